

J
fJ
g