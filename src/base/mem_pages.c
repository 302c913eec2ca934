/* See mem_pages.h.
 *
 * The allocator goes on owning both address ranges, and other threads map memory all the time, so
 * neither range may have a hole at any moment: it could be given away. Two steps keep that:
 *
 *   1. mremap(from, MAYMOVE | DONTUNMAP): the pages go to a fresh range T that the kernel chooses;
 *      `from` stays mapped, empty. When that fails nothing has changed.
 *   2. mremap(T, MAYMOVE | FIXED, to): they replace what is mapped at `to`, within one call; T,
 * which nobody else knows, is gone.
 *
 * In one step (FIXED | DONTUNMAP) the kernel would take the mapping at `to` away before it looks at
 * `from`, which may consist of several mappings after earlier moves, and then fail with a hole
 * left. The second step has a single mapping of the right kind to move, and Linux asks whether
 * there is room for it in its list first. Where it fails all the same (memory is committed
 * strictly, say), a mark tells whether `to` is still what it was. */
#include "base/mem_pages.h"

#include "base/compiler.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Pieces that a range is moved in when it cannot be moved at once, down to what is copied. */
#define PIECE_BYTES ((size_t)1 << 20)

#if defined(MREMAP_DONTUNMAP)

/* The pages of `from` at a fresh address, NULL when the system refuses. */
static void *detach(void *from, size_t bytes)
{
    void *away = mremap(from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_DONTUNMAP, NULL);
    return away == MAP_FAILED ? NULL : away;
}

/* Has them back. The caller's own addresses: nobody else's are touched. */
static void copy_back(void *from, void *away, size_t bytes)
{
    memcpy(from, away, bytes);
    munmap(away, bytes);
}

static bool is_mapped(void *ptr)
{
    unsigned char in_core;
    return mincore(ptr, MEM_PAGE_BYTES, &in_core) == 0;
}

enum moved { MOVED, REFUSED, LOST };

static enum moved move_piece(char *to, char *from, size_t bytes)
{
    static const char mark[] = "a mapping of the allocator that is to be replaced";
    void *away = detach(from, bytes);
    if (!away) {
        return REFUSED;
    }
    memcpy(to, mark, sizeof(mark));
    if (likely(mremap(away, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to) == to)) {
        return MOVED;
    }
    copy_back(from, away, bytes);
    /* A mapping that another thread was given there does not hold the mark. */
    return is_mapped(to) && memcmp(to, mark, sizeof(mark)) == 0 ? REFUSED : LOST;
}

#else

enum moved { MOVED, REFUSED, LOST };

static enum moved move_piece(char *to UNUSED, char *from UNUSED, size_t bytes UNUSED)
{
    return REFUSED;
}

#endif

bool mem_pages_move(void *to, void *from, size_t bytes)
{
    assert(((uintptr_t)to | (uintptr_t)from | bytes) % MEM_PAGE_BYTES == 0);
    char *target = to, *source = from;
    size_t piece = bytes;
    while (bytes > 0) {
        piece = piece < bytes ? piece : bytes;
        enum moved moved = piece > PIECE_BYTES ? move_piece(target, source, piece) : REFUSED;
        if (moved == REFUSED && piece > PIECE_BYTES) {
            piece = (piece / 2 + MEM_PAGE_BYTES - 1) & ~(MEM_PAGE_BYTES - 1);
            continue;
        }
        if (moved == LOST) {
            memcpy(from, to, (size_t)(source - (char *)from)); /* what had gone before */
            return false;
        }
        if (moved == REFUSED) {
            memcpy(target, source, piece);
        }
        target += piece;
        source += piece;
        bytes -= piece;
    }
    return true;
}
