/* How willingly the kernel ends this process when memory is short: oom-score-adj,
 * oom-score-adj-values (proc(5), /proc/<pid>/oom_score_adj). State: world. */
#ifndef SERVER_OOM_SCORE_H
#define SERVER_OOM_SCORE_H

#include "base/option.h"

enum oom_role { OOM_PRIMARY, OOM_REPLICA, OOM_CHILD, OOM_ROLE_COUNT };

/* Notes the value that the process began with. Boot, before the options are put into force. */
void oom_score_setup(void);
/* Puts the value of that role into force. With oom-score-adj no it gives back the value of the
 * start, where another was set. Failures are logged (not in a child). */
void oom_score_apply(enum oom_role role);

extern const struct option oom_options[];

#endif
