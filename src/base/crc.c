/* Table-driven checksums. The tables are made before main() runs, from their polynomials. */
#include "base/crc.h"

#include <string.h>

/* CRC-64/Jones, bits reflected; see crc.h. */
#define CRC64_POLYNOMIAL 0x95ac9329ac4bc9b5ULL
/* CRC-16/XMODEM. */
#define CRC16_POLYNOMIAL 0x1021U

/* crc64_table[k][b]: the checksum of byte b followed by k zero bytes, so that eight bytes can be
 * folded with eight independent look-ups ("slicing by 8"), or sixteen with as many. */
static uint64_t crc64_table[16][256];
static uint16_t crc16_table[256];

__attribute__((constructor)) static void crc_make_tables(void)
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint64_t wide = byte;
        unsigned narrow = byte << 8;
        for (int bit = 0; bit < 8; bit++) {
            wide = (wide >> 1) ^ ((wide & 1) != 0 ? CRC64_POLYNOMIAL : 0);
            narrow = (narrow << 1) ^ ((narrow & 0x8000) != 0 ? CRC16_POLYNOMIAL : 0);
        }
        crc64_table[0][byte] = wide;
        crc16_table[byte] = (uint16_t)narrow;
    }
    for (unsigned byte = 0; byte < 256; byte++) {
        for (int k = 1; k < 16; k++) {
            uint64_t before = crc64_table[k - 1][byte];
            crc64_table[k][byte] = (before >> 8) ^ crc64_table[0][before & 0xff];
        }
    }
}

/* The checksum of eight bytes; `table` is the first of eight, by how many bytes follow them. */
static inline uint64_t crc64_fold8(uint64_t word, const uint64_t (*table)[256])
{
    return table[7][word & 0xff] ^ table[6][(word >> 8) & 0xff] ^ table[5][(word >> 16) & 0xff] ^
           table[4][(word >> 24) & 0xff] ^ table[3][(word >> 32) & 0xff] ^
           table[2][(word >> 40) & 0xff] ^ table[1][(word >> 48) & 0xff] ^ table[0][word >> 56];
}

static inline uint64_t crc64_load(const unsigned char *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

uint64_t crc64(uint64_t crc, const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    for (; len >= 16; p += 16, len -= 16) {
        crc = crc64_fold8(crc ^ crc64_load(p), crc64_table + 8) ^
              crc64_fold8(crc64_load(p + 8), crc64_table);
    }
    if (len >= 8) {
        crc = crc64_fold8(crc ^ crc64_load(p), crc64_table);
        p += 8;
        len -= 8;
    }
    while (len-- > 0) {
        crc = (crc >> 8) ^ crc64_table[0][(crc ^ *p++) & 0xff];
    }
    return crc;
}

uint16_t crc16(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    unsigned crc = 0;
    while (len-- > 0) {
        crc = ((crc << 8) & 0xffff) ^ crc16_table[((crc >> 8) ^ *p++) & 0xff];
    }
    return (uint16_t)crc;
}
