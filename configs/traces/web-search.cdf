# Flow sizes of a web search cluster: bytes, and the part of the flows that are no larger. Mean 1.67 MB; half of the
# flows are below 75 kB, 95 % of the bytes are in flows above 1 MB.
# Measured: Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, figure 4. The points are those with which Alizadeh et al.,
# pFabric, SIGCOMM 2013, section 5 simulate it, in packets of 1460 B: 1 6 13 19 33 53 133 667 1333 3333 6667 20000.
1460 0
8760 0.15
18980 0.2
27740 0.3
48180 0.4
77380 0.53
194180 0.6
973820 0.7
1946180 0.8
4866180 0.9
9733820 0.97
29200000 1
