/* The arguments of SCAN and its kin, "[key] cursor [MATCH pattern] [COUNT count] ...", and the
 * beginning of their replies. State: plain values. */
#ifndef COMMANDS_SCAN_ARGS_H
#define COMMANDS_SCAN_ARGS_H

#include "engine/call.h"

/* The option beside MATCH and COUNT that a command takes. */
enum scan_args_option {
    SCAN_ARGS_NO_OPTION,
    SCAN_ARGS_TYPE,     /* TYPE type */
    SCAN_ARGS_NOVALUES, /* NOVALUES */
    SCAN_ARGS_NOSCORES, /* NOSCORES */
};

struct scan_args {
    uint64_t cursor;
    uint64_t count;       /* elements that one call should visit, at least 1 */
    struct slice pattern; /* ptr NULL: everything matches */
    struct slice type;    /* of TYPE; ptr NULL: every type */
    bool names_only;      /* NOVALUES or NOSCORES was given */
};

/* Parses argument `at`, the cursor (decimal digits, a sign in front as strtoul takes it, empty text
 * for 0), and sets the defaults of the rest; false with the error replied. Before the key is looked
 * at: a missing one hides faults of the options only. */
bool scan_args_cursor(struct call *c, int at, struct scan_args *args) MUST_CHECK;
/* Parses the options from argument `first` on; false with the error replied. */
bool scan_args_options(struct call *c, int first, enum scan_args_option option,
                       struct scan_args *args) MUST_CHECK;
/* True when `text` is asked for. */
bool scan_args_match(const struct scan_args *args, struct slice text);
/* Replies what stands before the elements: the array of two, and the next cursor. */
void scan_args_reply_cursor(struct call *c, uint64_t cursor);

#endif
