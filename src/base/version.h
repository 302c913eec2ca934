/* The version numbers that every program of this project reports. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

/* Our own version: INFO's keydb_version, --version of each program. */
#define KEYDB_VERSION "7.2.0"

/* The version of Redis whose behaviour is kept: INFO's redis_version, HELLO's version. Clients gate
 * features on it. */
#define REDIS_COMPAT_VERSION "7.2.6"
/* The same as COMMAND DOCS, Lua and modules want it: 0x00MMmmpp. */
#define REDIS_COMPAT_VERSION_NUM 0x00070206

#endif
