/* See modules.h. */
#include "engine/modules.h"

_Thread_local const char *modules_running;

bool modules_listen;

static void (*list)(struct reply *r);
static void (*teller)(bool last);

void modules_set_teller(void (*tell)(bool last))
{
    teller = tell;
}

void modules_tell(bool last)
{
    if (teller) {
        teller(last);
    }
}

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
