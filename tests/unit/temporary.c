/* A name in the folder that the runner of the tests gives and removes. */
#include "temporary.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

char *temporary_template(const char *name)
{
    const char *folder = getenv("TMPDIR");
    char *path;
    int len = asprintf(&path, "%s/%s-XXXXXX", folder ? folder : "/tmp", name);
    assert(len > 0);
    return path;
}
