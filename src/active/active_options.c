/* The options of active replicas. See active.h. */
#include "active/active.h"
#include "active/peer_links.h"

/* Both at once, whichever of them has changed. */
static bool apply_switch(const struct option *option UNUSED, const char **error)
{
    gil_assert_world();
    return active_may_switch(error);
}

static void settle_switch(bool accepted)
{
    gil_assert_world();
    active_switch(accepted);
}

static bool apply_writes(const struct option *option UNUSED, const char **error UNUSED)
{
    peer_links_judge_writes();
    return true;
}

const struct option active_options[] = {
    {.name = "active-replica",
     .type = OPTION_BOOL,
     .target = &active_settings.on,
     .initial = "no",
     .apply = apply_switch,
     .settle = settle_switch},
    {.name = "multi-master",
     .type = OPTION_BOOL,
     .target = &active_settings.multi,
     .initial = "no",
     .apply = apply_switch,
     .settle = settle_switch},
    {.name = "multi-master-no-forward",
     .type = OPTION_BOOL,
     .target = &active_settings.no_forward,
     .initial = "no"},
    {.name = "allow-write-during-load",
     .type = OPTION_BOOL,
     .target = &active_settings.write_during_load,
     .initial = "yes",
     .apply = apply_writes},
    {.name = NULL},
};
