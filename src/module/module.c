/* See module.h. */
#include "module/module.h"

#include "engine/info.h"
#include "engine/modules.h"
#include "module/admin.h"
#include "module/auth.h"
#include "module/call.h"
#include "module/event_loop.h"
#include "module/key_events.h"
#include "module/filters.h"
#include "module/fork.h"
#include "module/info.h"
#include "module/loader.h"
#include "module/main_loop.h"
#include "module/promises.h"
#include "module/server_events.h"
#include "module/threads.h"
#include "module/timers.h"
#include "module/type_io.h"
#include "module/users.h"

void module_setup(void)
{
    api_setup();
    io_setup();
    main_loop_setup();
    threads_setup();
    timers_setup();
    key_events_setup();
    server_events_setup();
    modules_set_list(loaded_reply);
    modules_set_allow_load_aside(loaded_allow_load_aside);
    info_set_guests(&module_info_guests);
    fork_setup();
    filters_setup();
    module_auth_setup();
    users_setup();
}

void module_teardown(void)
{
    modules_set_list(NULL);
    modules_set_allow_load_aside(NULL);
    io_teardown();
    main_loop_teardown();
    event_loop_teardown();
    timers_teardown();
    key_events_teardown();
    server_events_teardown();
    info_set_guests(NULL);
    fork_teardown();
    filters_teardown();
    module_auth_teardown();
    users_teardown();
    loader_teardown();
    call_teardown();
    admin_teardown();
    api_teardown();
}

void module_end_calls(void)
{
    promises_teardown();
}

void module_start(struct event_base *base)
{
    main_loop_start(base);
}

void module_stop(void)
{
    threads_stop();
    event_loop_stop();
    main_loop_stop();
}

void module_append_info(struct buf *out)
{
    loaded_append_info(out);
}
