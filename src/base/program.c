/* See program.h. */
#include "base/program.h"

#include "base/version.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES 64

static const char ours[] = "keydb-", theirs[] = "redis-";

static struct {
    char own[NAME_BYTES];
    char called[NAME_BYTES]; /* a copy: the server's title is written over argv[0] */
    bool is_redis;
} program;

void program_setup(const char *own, const char *called)
{
    assert(strncmp(own, ours, sizeof(ours) - 1) == 0 && strlen(own) < NAME_BYTES);
    const char *slash = called ? strrchr(called, '/') : NULL;
    snprintf(program.own, NAME_BYTES, "%s", own);
    snprintf(program.called, NAME_BYTES, "%s", slash ? slash + 1 : called ? called : own);
    program.is_redis = strncmp(program.called, theirs, sizeof(theirs) - 1) == 0 &&
                       strcmp(program.called + sizeof(theirs) - 1, own + sizeof(ours) - 1) == 0;
}

const char *program_name(void)
{
    assert(program.own[0]);
    return program.is_redis ? program.called : program.own;
}

const char *program_called(void)
{
    assert(program.own[0]);
    return program.called;
}

bool program_is_redis(void)
{
    assert(program.own[0]);
    return program.is_redis;
}

const char *program_version(void)
{
    return program_is_redis() ? REDIS_COMPAT_VERSION : KEYDB_VERSION;
}
