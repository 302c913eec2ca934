/* Checking a listpack that came from outside (RDB files, DUMP payloads): no byte is looked at
 * before it is known to be inside. */
#include "ds/listpack_priv.h"

/* The length of the element at `at` with what stands behind it, when all of it lies before `end`;
 * else 0. */
static size_t check_element(const unsigned char *at, const unsigned char *end)
{
    size_t left = (size_t)(end - at);
    size_t head = listpack_head_bytes(*at);
    if (head == 0 || head > left) {
        return 0;
    }
    size_t size = listpack_element_bytes(at);
    if (size >= left) {
        return 0;
    }
    unsigned char back[5];
    size_t back_len = listpack_write_back(back, size);
    if (back_len > left - size || memcmp(at + size, back, back_len) != 0) {
        return 0;
    }
    return size + back_len;
}

bool listpack_validate(const unsigned char *bytes, size_t size,
                       bool (*visit)(const unsigned char *at, uint32_t index, void *context),
                       void *context)
{
    if (size < LISTPACK_HEADER_BYTES + 1 || size > LISTPACK_MAX_BYTES ||
        listpack_load32(bytes) != size || bytes[size - 1] != LISTPACK_END) {
        return false;
    }
    const unsigned char *end = bytes + size - 1;
    const unsigned char *at = bytes + LISTPACK_HEADER_BYTES;
    uint32_t count = 0;
    while (at < end) {
        size_t step = check_element(at, end);
        if (step == 0 || (visit != NULL && !visit(at, count, context))) {
            return false;
        }
        at += step;
        count++;
    }
    uint32_t said = (uint32_t)bytes[4] | (uint32_t)bytes[5] << 8;
    return said == LISTPACK_UNKNOWN_COUNT || said == count;
}
