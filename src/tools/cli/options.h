/* What the command line (and the environment) asks keydb-cli to do.
 *
 * State: filled once by cli_options_parse(), then read by everybody. Mistakes in the command line
 * end the program with a message and status 1, as do modes that redis-cli has and keydb-cli does
 * not have yet. */
#ifndef TOOLS_CLI_OPTIONS_H
#define TOOLS_CLI_OPTIONS_H

#include <stdbool.h>

#include "tools/cli/uri.h"
#include "tools/common/secure.h"
#include "tools/common/words.h"

enum output_style {
    OUTPUT_TTY, /* typed and indented, for people */
    OUTPUT_RAW, /* values only, for pipes */
    OUTPUT_CSV,
    OUTPUT_JSON,
    OUTPUT_QUOTED_JSON, /* JSON whose strings are pure ASCII */
};

enum cli_mode {
    MODE_COMMAND, /* the words that remain, or the prompt when there are none */
    MODE_EVAL,
    MODE_STAT,
    MODE_SCAN,
    MODE_LATENCY,
    MODE_LATENCY_HISTORY,
    MODE_LATENCY_DIST,
    MODE_INTRINSIC_LATENCY,
    MODE_LRU_TEST,
    MODE_PIPE,
    MODE_RDB,
    MODE_FUNCTIONS_RDB,
    MODE_REPLICA,
    MODE_BIGKEYS,
    MODE_MEMKEYS,
    MODE_HOTKEYS,
    MODE_KEYSTATS,
};

enum protocol_wish {
    PROTOCOL_DEFAULT, /* RESP2, or RESP3 when the output is JSON and the server can */
    PROTOCOL_RESP2,
    PROTOCOL_RESP3,
};

struct options {
    /* where to */
    const char *host;
    int port;
    const char *unix_path; /* NULL: TCP */
    int db;
    struct uri uri;       /* of -u; owns strings that others here point to */
    const char *user;     /* NULL: the default user */
    const char *password; /* NULL: do not authenticate */
    bool password_on_command_line;
    bool no_auth_warning;
    bool ask_password;
    enum protocol_wish protocol;
    bool cluster; /* follow MOVED and ASK */
    struct secure_wish tls;

    /* what */
    enum cli_mode mode;
    const char *eval_path;
    bool ldb;      /* the script is run under the server's debugger */
    bool ldb_sync; /* which blocks the server, and keeps what the script changes */
    struct words command;
    long long repeat; /* of the command; negative: forever */
    bool repeat_given;
    long long interval_us;
    bool interval_given;
    bool quoted_input;
    bool stdin_last_arg;
    const char *stdin_tag; /* -X; NULL: not given */
    char *pattern;         /* --scan and its kin; may hold any byte, pattern_len of them */
    size_t pattern_len;
    long long scan_count;     /* 0: not given */
    long long memory_samples; /* of MEMORY USAGE; -1: not given */
    const char *cursor;       /* --keystats begins here; digits */
    long long top;            /* --keystats lists so many keys */
    int pipe_timeout_s;       /* 0: wait forever */
    const char *rdb_path;     /* "-": standard output */
    long long lru_keys;
    long long intrinsic_s;
    bool mono; /* --latency-dist in grey */

    /* how to print */
    enum output_style output;
    bool output_given;             /* an option, not isatty(), decided */
    const char *element_delimiter; /* -d */
    const char *command_delimiter; /* -D */
    bool show_pushes;
    bool fail_on_error; /* -e */
    bool verbose;
};

/* Fills `o` from the environment and the command line. */
void cli_options_parse(struct options *o, int argc, char **argv);

/* Frees what was copied. */
void cli_options_deinit(struct options *o);

#endif
