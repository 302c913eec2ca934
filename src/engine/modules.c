/* See modules.h. */
#include "engine/modules.h"

_Thread_local const char *modules_running;

static void (*list)(struct reply *r);
static bool (*allow_load_aside)(void);

void modules_set_list(void (*reply_list)(struct reply *r))
{
    list = reply_list;
}

void modules_set_allow_load_aside(bool (*allow)(void))
{
    allow_load_aside = allow;
}

bool modules_allow_load_aside(void)
{
    return !allow_load_aside || allow_load_aside();
}

void modules_reply_list(struct reply *r)
{
    if (list) {
        list(r);
    } else {
        reply_array(r, 0);
    }
}
