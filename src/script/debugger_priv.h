/* What the files of the debugger share: the session. See debugger.h for its life and its state. */
#ifndef SCRIPT_DEBUGGER_PRIV_H
#define SCRIPT_DEBUGGER_PRIV_H

#include "script/debugger.h"
#include "script/debugger_input.h"
#include "script/run.h"

#define DEBUGGER_BREAKPOINTS_MAX 64
/* What `maxlen` is at first, and its least. */
#define DEBUGGER_LEN 256
#define DEBUGGER_LEN_MIN 60
/* A line is cut here where `maxlen` is 0; lines that wait to be sent end here. */
#define DEBUGGER_LINE_BYTES ((size_t)4 << 20)
#define DEBUGGER_LINES_BYTES ((size_t)16 << 20)
/* What runs for so long stops where there is no busy-reply-threshold: a child must look at its
 * client now and then. */
#define DEBUGGER_LIMIT_MS 5000
/* Whoever takes no byte for so long has left. */
#define DEBUGGER_SEND_MS 5000

struct debugger {
    struct call *c;
    bool forked;
    bool left;     /* the client has: nothing stops any more */
    bool steps;    /* stops at the next line */
    bool stops;    /* redis.breakpoint() was called */
    bool hinted;   /* the client knows of `maxlen` */
    int line;      /* that runs */
    size_t maxlen; /* 0: none */
    struct slice source;
    int breakpoints[DEBUGGER_BREAKPOINTS_MAX], breakpoint_count;
    int64_t limit_ms;    /* of running between two stops */
    uint64_t resumed_ns; /* when the script went on */
    struct debugger_input in;
    struct buf lines; /* that wait to be sent, as the client gets them */
    int line_count;
    size_t lines_lost;
};

/* ---- lines (debugger_lines.c) ---- */

/* Adds a line; line ends in it become blanks. */
void debugger_add_line(struct debugger *d, struct slice line);
void debugger_add_linef(struct debugger *d, const char *format, ...) PRINTF_LIKE(2, 3);
/* The same, cut to `maxlen`, which the client is told of once. */
void debugger_add_cut_line(struct debugger *d, struct buf *line);
/* How many bytes of a line are worth making: one more than are shown. */
size_t debugger_line_limit(const struct debugger *d);
/* Adds line `number` of the script, marked; and those around it, `around` 0: all. */
void debugger_add_source_line(struct debugger *d, int number);
void debugger_add_source(struct debugger *d, int around, int context);
/* Whether a breakpoint is set there; lines of the script. */
bool debugger_has_breakpoint(const struct debugger *d, int line);
int debugger_count_lines(const struct debugger *d);
/* Sends the lines as one array. The session notices when the client has left. */
void debugger_send(struct debugger *d);
/* Sends bytes that the client is told beside the lines. */
void debugger_send_bytes(struct debugger *d, struct slice bytes);

/* ---- values (debugger_show.c) ---- */

/* Appends the value at `index` as text, no more than about `limit` bytes in all; leaves the stack.
 */
void debugger_show_value(lua_State *L, int index, struct buf *out, size_t limit);
/* The same of a command's reply. */
void debugger_show_reply(const struct reply *reply, struct buf *out, size_t limit);

/* ---- words (debugger_words.c) ---- */

/* Does what a request says; true when the script goes on. May raise. */
bool debugger_obey(struct debugger *d, lua_State *L, const struct slice *words, int count);

#endif
