/* See module.h. */
#include "module/module.h"

#include "engine/info.h"
#include "engine/modules.h"
#include "module/admin.h"
#include "module/auth.h"
#include "module/call.h"
#include "module/filters.h"
#include "module/fork.h"
#include "module/info.h"
#include "module/loader.h"
#include "module/users.h"

void module_setup(void)
{
    api_setup();
    modules_set_list(loaded_reply);
    info_set_guests(&module_info_guests);
    fork_setup();
    filters_setup();
    module_auth_setup();
    users_setup();
}

void module_teardown(void)
{
    modules_set_list(NULL);
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

void module_append_info(struct buf *out)
{
    loaded_append_info(out);
}
