# Downloads of 30 to 50 kB, evenly distributed (RFC 8868, section 5.1): bytes, and the part that is no larger.
30000 0
50000 1
