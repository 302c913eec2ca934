/* See module.h. */
#include "module/module.h"

#include "engine/modules.h"
#include "module/admin.h"
#include "module/call.h"
#include "module/loader.h"
#include "module/type_io.h"

void module_setup(void)
{
    api_setup();
    io_setup();
    modules_set_list(loaded_reply);
    modules_set_allow_load_aside(loaded_allow_load_aside);
}

void module_teardown(void)
{
    modules_set_list(NULL);
    modules_set_allow_load_aside(NULL);
    io_teardown();
    loader_teardown();
    call_teardown();
    admin_teardown();
    api_teardown();
}

void module_append_info(struct buf *out)
{
    loaded_append_info(out);
}
