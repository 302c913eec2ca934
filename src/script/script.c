/* See script.h. */
#include "script/script.h"

#include "script/debugger.h"
#include "script/eval.h"
#include "script/functions.h"
#include "script/run.h"

void script_setup(void)
{
    eval_setup();
    functions_setup();
    debugger_setup();
}

void script_teardown(void)
{
    debugger_teardown();
    functions_teardown();
    eval_teardown();
    run_teardown();
}

struct script_figures script_figures(void)
{
    struct script_figures figures = {0};
    eval_add_figures(&figures);
    functions_add_figures(&figures);
    return figures;
}
