# Flow sizes of a data mining cluster: bytes, and the part of the flows that are no larger. Mean 7.47 MB; half of the
# flows are one packet, 95 % of the bytes are in flows above 30 MB.
# Measured: Greenberg et al., VL2: A Scalable and Flexible Data Center Network, SIGCOMM 2009, figure 2. The points are those with
# which Alizadeh et al., pFabric, SIGCOMM 2013, section 5 simulate it, in packets of 1460 B:
# 1 2 3 7 267 2107 66667 666667.
1460 0.5
2920 0.6
4380 0.7
10220 0.8
389820 0.9
3076220 0.95
97333820 0.99
973333820 1
