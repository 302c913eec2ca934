/* See modules.h. */
#include "engine/modules.h"

_Thread_local const char *modules_running;

static void (*list)(struct reply *r);

void modules_set_list(void (*reply_list)(struct reply *r))
{
    list = reply_list;
}

void modules_reply_list(struct reply *r)
{
    if (list) {
        list(r);
    } else {
        reply_array(r, 0);
    }
}
