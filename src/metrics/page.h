/* The page at /: page.html as it is, in the program. State: immutable. */
#ifndef METRICS_PAGE_H
#define METRICS_PAGE_H

#include "base/slice.h"

struct evkeyvalq; /* http.h */

/* The page. */
struct slice page_html(void);
/* Adds the head's fields that keep the page to itself: it runs its own script and style, by their
 * hashes, asks this server, and nothing else; nobody may frame it. */
void page_add_policy(struct evkeyvalq *fields);

#endif
