/* Users on no list. See acl.h. */
#include "engine/acl_priv.h"

#include "base/mem.h"

#include <assert.h>

/* All of them: what their rules say of commands follows commands that come and go. */
static struct {
    struct acl_user **users;
    unsigned count;
} unlisted;

struct acl_user *acl_unlisted_create(struct slice name)
{
    struct acl_user *user = acl_user_create(name);
    unlisted.users = mem_realloc(unlisted.users, (unlisted.count + 1) * sizeof(struct acl_user *));
    unlisted.users[unlisted.count++] = user;
    return user;
}

struct acl_user *acl_unlisted_copy(const struct acl_user *user)
{
    struct acl_user *copy = acl_unlisted_create(slice_cstr(user->name));
    acl_user_copy(copy, user);
    return copy;
}

void acl_unlisted_destroy(struct acl_user **user)
{
    unsigned i = 0;
    while (i < unlisted.count && unlisted.users[i] != *user) {
        i++;
    }
    assert(i < unlisted.count);
    unlisted.users[i] = unlisted.users[--unlisted.count];
    if (unlisted.count == 0) {
        mem_free(unlisted.users);
        unlisted.users = NULL;
    }
    acl_user_destroy(*user);
    *user = NULL;
}

bool acl_unlisted_set(struct acl_user *user, const struct slice *rules, int count,
                      struct buf *error)
{
    struct acl_user *changed = acl_user_create(slice_cstr(user->name));
    acl_user_copy(changed, user);
    bool done = acl_apply_rules(changed, rules, count, error);
    if (done) {
        acl_user_swap(user, changed);
    }
    acl_user_destroy(changed);
    return done;
}

void acl_unlisted_each(void (*visit)(struct acl_user *user))
{
    for (unsigned i = 0; i < unlisted.count; i++) {
        visit(unlisted.users[i]);
    }
}
