/* See modules.h. */
#include "engine/modules.h"

_Thread_local const char *modules_running;

bool modules_listen;
bool modules_have_types;

static void (*list)(struct reply *r);
static bool (*allow_load_aside)(void);
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

/* ---- what happens to the server ---- */

_Atomic uint32_t modules_topics;

static void (*reporter)(enum modules_topic topic, unsigned part, const struct modules_facts *facts);
static void (*later_reporter)(enum modules_topic topic, unsigned part);

void modules_set_reporter(void (*report)(enum modules_topic topic, unsigned part,
                                         const struct modules_facts *facts),
                          void (*report_later)(enum modules_topic topic, unsigned part))
{
    reporter = report;
    later_reporter = report_later;
}

void modules_tell_news_later(enum modules_topic topic, unsigned part)
{
    if (later_reporter) {
        later_reporter(topic, part);
    }
}

void modules_tell_news(enum modules_topic topic, unsigned part,
                       const struct modules_facts *facts) NO_THREAD_SAFETY_ANALYSIS
{
    bool held = keyspace_is_exclusive();
    if (!held) {
        keyspace_lock_exclusive();
    }
    if (reporter) {
        reporter(topic, part, facts);
    }
    if (!held) {
        keyspace_unlock_exclusive();
    }
}
