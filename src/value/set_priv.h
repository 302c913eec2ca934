/* What the files of the set type share. State: pure functions. */
#ifndef VALUE_SET_PRIV_H
#define VALUE_SET_PRIV_H

#include "value/set.h"
#include "value/set_element.h"

static_assert(sizeof(((struct set_member *)NULL)->text) >= 8, "a member in a slot fits");

/* The member is the table's entry: borrowed until the set changes. */
static inline void set_member_of_element(struct set_member *m, const void *entry)
{
    set_member_init(m, set_element_bytes(entry, m->text));
}
/* The member is what the listpack has at `at`. */
void set_member_of_packed(struct set_member *m, const unsigned char *at);

#endif
