/* Runs commands of this layer without a server: one session, one call at a time, slice by slice
 * where asked. */
#ifndef TESTS_UNIT_COMMANDS_CALLER_H
#define TESTS_UNIT_COMMANDS_CALLER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "engine/execute.h"

/* cmocka group fixtures: keyspace with 16 databases, and the string, set and key commands. */
int caller_setup(void **state);
int caller_teardown(void **state);

/* Runs a command to its end; words are separated by blanks. The reply's bytes are NUL-terminated
 * and live until the next command. */
const char *caller_run(const char *line);
const char *caller_run_args(int argc, const struct slice *argv);
/* The same in one hold, whatever it takes. */
const char *caller_run_whole(const char *line);
/* While commands run, allocations of more than so many bytes fail (mem_fail_above); SIZE_MAX: none.
 */
void caller_refuse_above(size_t bytes);
/* Runs the first slice only; true when that was all. Then the next ones. Other commands may run
 * between (the caller has two places: a sliced call and plain ones). */
bool caller_begin(int argc, const struct slice *argv);
bool caller_begin_line(const char *line);
bool caller_continue(void);
/* The access that its next slice asks for. */
enum call_access caller_next_access(void);
/* The reply of the sliced call that has ended. */
struct slice caller_sliced_reply(void);
/* Gives the sliced call up, as when its client goes away. */
void caller_abandon(void);
/* Whose calls they are. */
struct session *caller_session(void);
/* The last call that was run whole. */
const struct call *caller_last(void);
/* The live entry of a key in database 0, NULL when missing. */
struct entry *caller_entry(const char *key);

#endif
