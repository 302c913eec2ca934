/* What the files of access control share: selectors and how rules change them. State: world. */
#ifndef ENGINE_ACL_PRIV_H
#define ENGINE_ACL_PRIV_H

#include "engine/acl.h"

enum acl_permission { ACL_READ = 1, ACL_WRITE = 2, ACL_READ_WRITE = 3 };

/* A glob over keys or channels. */
struct acl_pattern {
    struct slice text;    /* owned */
    unsigned permissions; /* enum acl_permission; of channels none */
};

struct acl_patterns {
    struct acl_pattern *items;
    int count;
};

/* "+get|word": the command is allowed with this first argument (deprecated by Redis, and kept). */
struct acl_first_arg {
    uint16_t command;
    struct slice word; /* owned */
};

struct acl_selector {
    bool all_commands; /* nothing was taken from +@all: not even commands of later modules */
    bool from_all;     /* its rules start from +@all, not from -@all */
    bool all_keys, all_channels;
    uint64_t allowed[COMMAND_ID_MAX / 64]; /* a bit for each command's id */
    struct acl_first_arg *first_args;
    int first_arg_count;
    struct buf rules; /* what was said of commands since the last @all: "+get -@write" */
    struct acl_patterns keys, channels;
};

/* Why a rule was refused. */
enum acl_fault {
    ACL_FAULT_NONE,
    ACL_FAULT_SYNTAX,
    ACL_FAULT_UNKNOWN,    /* command or category */
    ACL_FAULT_KEYS_GIVEN, /* a pattern after * */
    ACL_FAULT_CHANNELS_GIVEN,
    ACL_FAULT_HASH,
    ACL_FAULT_NO_PASSWORD,
    ACL_FAULT_SUBCOMMAND_ARG,
};
const char *acl_fault_text(enum acl_fault fault);

/* A user of that name that may nothing; a copy of one (which keeps its own name). The caller owns
 * it. */
struct acl_user *acl_user_create(struct slice name);
void acl_user_destroy(struct acl_user *user);
/* Gives `user` everything that `source` has but its name, and `source` what `user` had. */
void acl_user_swap(struct acl_user *user, struct acl_user *source);
/* Makes `user` equal to `source` but for the name. */
void acl_user_copy(struct acl_user *user, const struct acl_user *source);
/* The default user as it is at the start: on nopass ~* &* +@all. */
void acl_user_set_default(struct acl_user *user);
/* Applies one rule ("on", ">password", "+get", "(+get ~a)" ...). */
enum acl_fault acl_user_apply(struct acl_user *user, struct slice rule) MUST_CHECK;
/* Joins arguments "(+get" "~x)" to whole selectors. The rules lie in `words` and `scratch`; returns
 * their number, or -1 with *open the argument whose bracket is never closed. `words` has room for
 * `count`. */
int acl_join_rules(const struct slice *rules, int count, struct slice *words, struct buf *scratch,
                   struct slice *open);
/* Whether clients of the user may still listen to what they may now; see acl_set_user. */
void acl_close_listeners(const struct acl_user *before, const struct acl_user *user,
                         const struct session *caller) REQUIRES(gil);
/* Puts the users of `users` (owned by the callee from now on, but for `default`, whose content is
 * taken) in the place of all there are. */
void acl_replace_users(struct acl_user **users_take, int count, const struct session *caller)
    REQUIRES(gil);
/* Applies the rules to `user`, one after the other; false with the error appended, and those before
 * the bad one applied. */
bool acl_apply_rules(struct acl_user *user, const struct slice *rules, int count,
                     struct buf *error) MUST_CHECK;

#endif
