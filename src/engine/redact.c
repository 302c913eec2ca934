/* Secrets among arguments: one rule a command that takes them. */
#include "engine/redact.h"

#include "engine/config.h"

#include <assert.h>

static bool any_argument(const struct call *c UNUSED, int i)
{
    return i >= 1;
}

/* HELLO proto [AUTH user password] [SETNAME name]. */
static bool after_hello_auth(const struct call *c, int i)
{
    return (i >= 3 && call_arg_is(c, i - 1, "auth")) || (i >= 4 && call_arg_is(c, i - 2, "auth"));
}

/* ACL SETUSER name rule ...: Redis hides the name too. */
static bool acl_rules(const struct call *c, int i)
{
    return i >= 2 && call_arg_is(c, 1, "setuser");
}

/* MIGRATE host port key db timeout ... [AUTH password | AUTH2 user password] ... */
static bool after_migrate_auth(const struct call *c, int i)
{
    return i >= 7 && (call_arg_is(c, i - 1, "auth") || call_arg_is(c, i - 1, "auth2") ||
                      (i >= 8 && call_arg_is(c, i - 2, "auth2")));
}

/* CONFIG SET name value ... */
static bool config_value(const struct call *c, int i)
{
    if (i < 3 || i % 2 == 0 || !call_arg_is(c, 1, "set")) {
        return false;
    }
    const struct option *option = config_find(c->argv[i - 1]);
    return option != NULL && (option->flags & OPTION_SENSITIVE) != 0;
}

/* Its bit in call.secrets. */
static uint32_t bit_of(int i)
{
    return (uint32_t)1 << (i < 31 ? i : 31);
}

void call_mark_secret(struct call *c, int i)
{
    assert(i > 0 && i < c->argc);
    c->secrets |= bit_of(i);
}

bool call_argument_is_sensitive(const struct call *c, int i)
{
    static const struct {
        const char *command; /* without the subcommand */
        bool (*is_sensitive)(const struct call *c, int i);
    } rules[] = {
        {"auth", any_argument}, {"hello", after_hello_auth},     {"config", config_value},
        {"acl", acl_rules},     {"migrate", after_migrate_auth},
    };
    assert(i >= 0 && i < c->argc);
    if (c->secrets & bit_of(i)) {
        return true;
    }
    if (c->cmd == NULL) {
        return false;
    }
    const struct command *top = c->cmd->parent != NULL ? c->cmd->parent : c->cmd;
    for (size_t k = 0; k < sizeof(rules) / sizeof(rules[0]); k++) {
        if (strcmp(top->row->name, rules[k].command) == 0) {
            return rules[k].is_sensitive(c, i);
        }
    }
    return false;
}
