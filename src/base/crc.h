/* Checksums of the Redis file formats and of cluster slots. Pure functions. */
#ifndef BASE_CRC_H
#define BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* CRC-64/Jones (polynomial 0xad93d23594c935a9, reflected, init and xorout 0), as in RDB files and
 * DUMP payloads; check value of "123456789" is 0xe9c6d914c4b8d9ca. Feed the previous result to
 * continue. */
uint64_t crc64(uint64_t crc, const void *bytes, size_t len);
/* CRC-16/XMODEM, for hash slots; check value of "123456789" is 0x31c3. */
uint16_t crc16(const void *bytes, size_t len);

#endif
