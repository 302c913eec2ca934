/* The name and version that keydb-cli shows. */
#ifndef TOOLS_CLI_VERSION_H
#define TOOLS_CLI_VERSION_H

#include "base/version.h"

#define CLI_NAME "keydb-cli"
#define CLI_VERSION KEYDB_VERSION

#endif
