/**
 * A self-signed certificate for svc.example.test, localhost and 127.0.0.1, valid from 2020 to 2120 and
 * made with openssl. Its key protects nothing.
 */
export const cert = `-----BEGIN CERTIFICATE-----
MIIBiDCCAS2gAwIBAgIBATAKBggqhkjOPQQDAjAbMRkwFwYDVQQDDBBzdmMuZXhh
bXBsZS50ZXN0MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAbMRkw
FwYDVQQDDBBzdmMuZXhhbXBsZS50ZXN0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcD
QgAEHmaKU/0C3XEWiNb8hGz5/MbkF+hk3coWCH7yG7kk9aLnmoN8IDFT+lbdoRnD
Q7s7hrPXWGaU6NTpxjOAl9xkcqNgMF4wDwYDVR0TAQH/BAUwAwEB/zAsBgNVHREE
JTAjghBzdmMuZXhhbXBsZS50ZXN0gglsb2NhbGhvc3SHBH8AAAEwHQYDVR0OBBYE
FI+nok56PsgzuFu+xthaRIgooQYAMAoGCCqGSM49BAMCA0kAMEYCIQDI1NheQJDI
vUx5udIAxesnkrQHzXLriib6MuYzQdwE7wIhAN3fxJA8lbf5OTdYxe/JXTv2LZE5
rEhupKpPRT9hrpeb
-----END CERTIFICATE-----
`
export const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQggy11o9CYtQ7ZXVef
tS5Mmnsk73zzev/vy7jVssWxkwOhRANCAAQeZopT/QLdcRaI1vyEbPn8xuQX6GTd
yhYIfvIbuST1oueag3wgMVP6Vt2hGcNDuzuGs9dYZpTo1OnGM4CX3GRy
-----END PRIVATE KEY-----
`
