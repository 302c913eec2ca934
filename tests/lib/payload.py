"""Payloads of RESTORE made by hand, byte by byte."""

import struct


def crc64(data):
    """CRC-64/Jones, bit by bit over a table made here."""
    crc = 0
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    return crc


def _crc_table():
    table = []
    for value in range(256):
        for _ in range(8):
            value = (value >> 1) ^ (0x95ac9329ac4bc9b5 if value & 1 else 0)
        table.append(value)
    return table


CRC_TABLE = _crc_table()


def sealed(body, version=10):
    body += struct.pack("<H", version)
    return body + struct.pack("<Q", crc64(body))


def listpack(*numbers):
    """A listpack of integers below 128 (bytes: strings below 64 bytes)."""
    out = b""
    for n in numbers:
        element = bytes([n]) if isinstance(n, int) else bytes([0x80 | len(n)]) + n
        out += element + bytes([len(element)])
    return struct.pack("<IH", len(out) + 7, len(numbers)) + out + b"\xff"


def string(data):
    assert len(data) < 64
    return bytes([len(data)]) + data
