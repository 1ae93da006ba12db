
.
xPlaceholder*
dtype0*
shape:
@
cPartitionedCallx*

fR
r*
Tin
2*
Tout
2h
f

r
a
b@
nPartitionedCalla*

fR
r*
Tin
2*
Tout
2"
b
n:output:0"Ú