/* See held.h. */
#include "net/held.h"

#include "base/mem.h"
#include "resp/parser.h"

#include <assert.h>

void held_put_first(struct client *c, const struct request *request)
{
    struct held_request *held = mem_alloc(sizeof(*held) + request_copy_bytes(request));
    held->request = request_copy(request, held->bytes);
    held->next = c->held;
    held->order = 0;
    c->held = held;
}

struct held_request *held_take(struct client *c)
{
    struct held_request *held = c->held;
    assert(held);
    c->held = held->next;
    held->next = NULL;
    return held;
}

void held_forget(struct client *c)
{
    while (c->held) {
        struct held_request *held = held_take(c);
        parser_release(&held->request);
        mem_free(held);
    }
}

size_t held_memory_bytes(const struct client *c)
{
    size_t bytes = 0;
    for (const struct held_request *held = c->held; held; held = held->next) {
        bytes += mem_usable_size(held);
    }
    return bytes;
}

size_t held_argument_bytes(const struct client *c)
{
    size_t bytes = 0;
    for (const struct held_request *held = c->held; held; held = held->next) {
        for (int i = 0; i < held->request.argc; i++) {
            bytes += held->request.argv[i].len;
        }
    }
    return bytes;
}
