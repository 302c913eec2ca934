/* See build_info.h. The Makefile passes the commit to this file alone, so that only it is compiled
 * anew. */
#include "server/build_info.h"

#include "base/crc.h"
#include "base/version.h"

#include <stdio.h>
#include <string.h>

#ifndef KEYDB_GIT_SHA1
#define KEYDB_GIT_SHA1 "00000000"
#endif

const char *build_git_sha(void)
{
    return strlen(KEYDB_GIT_SHA1) >= 8 ? KEYDB_GIT_SHA1 : "00000000";
}

const char *build_id(void)
{
    static _Thread_local char id[17]; /* each caller its own: INFO runs on all threads */
    static const char what[] = KEYDB_VERSION KEYDB_GIT_SHA1;
    snprintf(id, sizeof(id), "%llx", (unsigned long long)crc64(0, what, sizeof(what) - 1));
    return id;
}
