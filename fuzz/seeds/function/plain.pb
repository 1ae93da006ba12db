

g
a"T
b"T"	
Ttype
nNega*
TJT"

bn:y:0