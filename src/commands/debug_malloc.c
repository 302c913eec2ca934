/* DEBUG MALLCTL and MALLCTL-STR: reads and sets the allocator's named controls. */
#include "commands/debug_priv.h"
#include "base/mem_debug.h"

#include <errno.h>
#include <string.h>

/* Names of controls are far shorter. */
#define MALLCTL_NAME_BYTES 128

/* Copies the control's name; false with the error replied. */
static bool mallctl_name(struct call *c, char name[MALLCTL_NAME_BYTES])
{
    struct slice text = c->argv[2];
    if (text.len >= MALLCTL_NAME_BYTES || memchr(text.ptr, '\0', text.len)) {
        reply_errorf(c->reply, "ERR %s", strerror(ENOENT));
        return false;
    }
    memcpy(name, text.ptr, text.len);
    name[text.len] = '\0';
    return true;
}

void debug_mallctl(struct call *c)
{
    char name[MALLCTL_NAME_BYTES];
    int64_t wanted = 0, value;
    if (!mallctl_name(c, name) || (c->argc == 4 && !call_arg_i64(c, 3, &wanted))) {
        return;
    }
    int error = mem_control_number(name, c->argc == 4 ? &wanted : NULL, &value);
    if (error) {
        reply_errorf(c->reply, "ERR %s", strerror(error));
    } else {
        reply_i64(c->reply, value);
    }
}

void debug_mallctl_str(struct call *c)
{
    char name[MALLCTL_NAME_BYTES];
    const char *text = NULL;
    if (!mallctl_name(c, name)) {
        return;
    }
    if (c->argc == 4) {
        /* The allocator keeps the pointer: a client's text must not become one. */
        reply_error(c->reply, "ERR Setting text controls is not supported");
        return;
    }
    int error = mem_control_text(name, &text);
    if (error) {
        reply_errorf(c->reply, "ERR %s", strerror(error));
    } else {
        reply_bulk_cstr(c->reply, text ? text : "");
    }
}
