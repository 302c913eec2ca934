/* Users: who there is, and what becomes of clients when that changes. See acl.h. */
#include "engine/acl_priv.h"

#include "base/mem.h"
#include "engine/auth.h"

#include <assert.h>

static struct {
    struct acl_user **users; /* by name */
    int count;
    struct acl_user *default_user;
    const struct acl_clients *clients;
} acl;

/* ---- users by name ---- */

/* Where the name is, or would be. */
static int place_of(struct slice name, bool *found)
{
    int low = 0, high = acl.count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = slice_compare(slice_cstr(acl.users[middle]->name), name);
        if (order == 0) {
            *found = true;
            return middle;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    *found = false;
    return low;
}

static void insert_user(struct acl_user *user_take)
{
    bool found;
    int at = place_of(slice_cstr(user_take->name), &found);
    assert(!found);
    acl.users = mem_realloc(acl.users, ((size_t)acl.count + 1) * sizeof(*acl.users));
    memmove(acl.users + at + 1, acl.users + at, (size_t)(acl.count - at) * sizeof(*acl.users));
    acl.users[at] = user_take;
    acl.count++;
}

struct acl_user *acl_default_user(void)
{
    if (unlikely(acl.default_user == NULL)) { /* boot: the first option that asks */
        acl.default_user = acl_user_create(SLICE("default"));
        acl_user_set_default(acl.default_user);
        insert_user(acl.default_user);
    }
    return acl.default_user;
}

static struct acl_user *find(struct slice name)
{
    bool found;
    acl_default_user();
    int at = place_of(name, &found);
    return found ? acl.users[at] : NULL;
}

const struct acl_user *acl_user_find(struct slice name)
{
    return find(name);
}

int acl_user_count(void)
{
    return acl.count;
}

const struct acl_user *acl_user_at(int index)
{
    assert(index >= 0 && index < acl.count);
    return acl.users[index];
}

void acl_start_session(struct session *s)
{
    const struct acl_user *user = acl_default_user();
    s->acl = user;
    s->user = user->name;
    s->authenticated = user->enabled && user->nopass;
}

/* Without selectors: nothing of it is ever looked at, as it is unlimited. */
static char internal_name[] = "(internal)";
static const struct acl_user internal_user = {
    .unlimited = true, .enabled = true, .nopass = true, .name = internal_name};

void acl_start_internal(struct session *s)
{
    s->acl = &internal_user;
    s->user = internal_user.name;
    s->authenticated = true;
}

bool acl_is_internal(const struct session *s)
{
    return s->acl == &internal_user;
}

void acl_set_password(struct acl_user *user, struct slice password)
{
    enum acl_fault fault = acl_user_apply(user, SLICE("resetpass"));
    if (password.len == 0) {
        fault = acl_user_apply(user, SLICE("nopass"));
    } else {
        struct buf rule = {0};
        buf_append_char(&rule, '>');
        buf_append_slice(&rule, password);
        fault = acl_user_apply(user, buf_slice(&rule));
        auth_forget(&rule);
    }
    assert(fault == ACL_FAULT_NONE);
    (void)fault;
}

void acl_teardown(void)
{
    for (int i = 0; i < acl.count; i++) {
        acl_user_destroy(acl.users[i]);
    }
    mem_free(acl.users);
    acl.users = NULL;
    acl.count = 0;
    acl.default_user = NULL;
}

/* ---- clients of users that change ---- */

void acl_set_clients(const struct acl_clients *clients)
{
    acl.clients = clients;
}

const struct acl_clients *acl_clients(void)
{
    return acl.clients;
}

struct closing {
    const struct acl_user *user;
    const struct acl_user *now; /* what it may do from now on */
    const struct session *caller;
};

static bool may_still_listen(struct slice name, bool is_pattern, void *context)
{
    const struct closing *c = context;
    return acl_may_listen(c->now, name, is_pattern);
}

static bool close_listener(struct session *s, void *context)
{
    struct closing *c = context;
    if (s->acl == c->user && !acl.clients->each_channel(s, may_still_listen, context)) {
        acl.clients->close(s, s == c->caller);
    }
    return true;
}

void acl_close_listeners(const struct acl_user *user, const struct acl_user *now,
                         const struct session *caller)
{
    struct closing c = {user, now, caller};
    if (acl.clients && !now->unlimited) {
        acl.clients->each(close_listener, &c);
    }
}

static bool close_client(struct session *s, void *context)
{
    struct closing *c = context;
    if (s->acl == c->user) {
        /* It is somebody else's from now on, and nobody's in what it may do. */
        auth_note_change(s);
        acl_start_session(s);
        s->authenticated = false;
        acl.clients->close(s, s == c->caller);
    }
    return true;
}

void acl_close_clients(const struct acl_user *user, const struct session *caller)
{
    struct closing c = {user, NULL, caller};
    if (acl.clients) {
        acl.clients->each(close_client, &c);
    }
}

static bool move_client(struct session *s, void *context)
{
    const struct closing *c = context;
    if (s->acl == c->user) {
        s->acl = c->now;
        s->user = c->now->name;
    }
    return true;
}

void acl_move_clients(const struct acl_user *user, const struct acl_user *now)
{
    struct closing c = {user, now, NULL};
    if (acl.clients) {
        acl.clients->each(move_client, &c);
    }
}

static void remove_user(struct acl_user *user, const struct session *caller) REQUIRES(gil)
{
    bool found;
    assert(user != acl.default_user);
    int at = place_of(slice_cstr(user->name), &found);
    assert(found && acl.users[at] == user);
    acl.count--;
    memmove(acl.users + at, acl.users + at + 1, (size_t)(acl.count - at) * sizeof(*acl.users));
    acl_close_clients(user, caller);
    acl_user_destroy(user);
}

/* Puts what `changed` may do into the place of what `user` may. */
static void publish(struct acl_user *user, struct acl_user *changed, const struct session *caller)
    REQUIRES(gil)
{
    acl_close_listeners(user, changed, caller);
    acl_user_swap(user, changed);
    auth_publish();
}

/* Whether both say the same. */
static bool is_same(const struct acl_user *a, const struct acl_user *b)
{
    struct buf of_a = {0}, of_b = {0};
    acl_append_user(&of_a, a);
    acl_append_user(&of_b, b);
    bool same = slice_equal(buf_slice(&of_a), buf_slice(&of_b));
    buf_deinit(&of_a);
    buf_deinit(&of_b);
    return same;
}

/* A file says who the user is now: whoever came in as it was before, with another password perhaps,
 * comes in anew. The default user's clients stay, as in Redis: they need not have come in. */
static void replace_user(struct acl_user *user, struct acl_user *changed,
                         const struct session *caller) REQUIRES(gil)
{
    struct closing c = {user, NULL, caller};
    if (acl.clients && user != acl.default_user && !is_same(user, changed)) {
        acl.clients->each(close_client, &c);
    }
    publish(user, changed, caller);
}

/* ---- verbs ---- */

bool acl_apply_rules(struct acl_user *user, const struct slice *rules, int count, struct buf *error)
{
    struct slice *words = mem_alloc((size_t)count * sizeof(*words));
    struct buf scratch = {0};
    struct slice open = {NULL, 0};
    int joined = acl_join_rules(rules, count, words, &scratch, &open);
    if (joined < 0) {
        buf_printf(error, "ERR Unmatched parenthesis in acl selector starting at '%.*s'.",
                   (int)(open.len < 128 ? open.len : 128), open.ptr);
    }
    bool done = joined >= 0;
    for (int i = 0; done && i < joined; i++) {
        enum acl_fault fault = acl_user_apply(user, words[i]);
        if (fault != ACL_FAULT_NONE) {
            buf_printf(error, "ERR Error in ACL SETUSER modifier '%.*s': %s",
                       (int)(words[i].len < 128 ? words[i].len : 128), words[i].ptr,
                       acl_fault_text(fault));
            done = false;
        }
    }
    buf_deinit(&scratch);
    mem_free(words);
    return done;
}

bool acl_set_user(struct slice name, const struct slice *rules, int count,
                  const struct session *caller, struct buf *error)
{
    if (!acl_name_is_valid(name)) {
        buf_append_cstr(error, "ERR Usernames can't contain spaces or null characters");
        return false;
    }
    struct acl_user *user = find(name);
    struct acl_user *changed = acl_user_create(name);
    if (user) {
        acl_user_copy(changed, user);
    }
    bool done = acl_apply_rules(changed, rules, count, error);
    if (done && user) {
        publish(user, changed, caller);
    } else if (done) {
        insert_user(changed);
        changed = NULL;
    }
    if (changed) {
        acl_user_destroy(changed);
    }
    return done;
}

bool acl_delete_user(struct slice name, const struct session *caller)
{
    struct acl_user *user = find(name);
    if (!user || user == acl.default_user) {
        return false;
    }
    remove_user(user, caller);
    return true;
}

void acl_replace_users(struct acl_user **users_take, int count, const struct session *caller)
{
    bool *kept = mem_calloc((size_t)count + 1, sizeof(*kept));
    struct acl_user *fresh_default = acl_user_create(SLICE("default"));
    acl_user_set_default(fresh_default);
    for (int k = acl.count - 1; k >= 0; k--) {
        struct acl_user *user = acl.users[k], *changed = NULL;
        for (int i = 0; i < count && !changed; i++) {
            if (strcmp(users_take[i]->name, user->name) == 0) {
                changed = users_take[i];
                kept[i] = true;
            }
        }
        if (!changed && user == acl.default_user) {
            changed = fresh_default;
        }
        if (changed) {
            replace_user(user, changed, caller);
        } else {
            remove_user(user, caller);
        }
    }
    for (int i = 0; i < count; i++) {
        if (kept[i]) {
            acl_user_destroy(users_take[i]);
        } else {
            insert_user(users_take[i]);
        }
    }
    acl_user_destroy(fresh_default);
    mem_free(kept);
}
