/* Moving the content of one block of the allocator to another by moving its pages: whole page
 * tables change hands instead of bytes, and what nobody has touched stays untouched. No state. Any
 * thread; the two blocks are the caller's alone meanwhile. */
#ifndef BASE_MEM_PAGES_H
#define BASE_MEM_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Both blocks begin at a multiple of this; what is moved is one too. */
#define MEM_PAGE_BYTES ((size_t)4096)

/* Moves `bytes` bytes; what stands in `from` afterwards is undefined. Where the system does not
 * move pages (Linux before 5.7, no room for more mappings) they are copied. False: `to` must not be
 * used any more, nor freed, and `from` is as it was: the caller tries another block. */
bool mem_pages_move(void *to, void *from, size_t bytes);

#endif
