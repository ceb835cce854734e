package kernels

// tileGo returns the micro-kernel in plain Go.
func tileGo[F float]() tile[F] { return tile[F]{4, mulGo[F], addGo[F]} }

// mulGo computes two tiles of 4 rows and 2 columns: as many sums as amd64 has registers for.
func mulGo[F float](k int, a []F, ars, acs int, b, c []F, ldc int) {
	mulGo4x2(k, a, ars, acs, b, c, ldc)
	mulGo4x2(k, a, ars, acs, b[2:], c[2:], ldc)
}

func mulGo4x2[F float](k int, a []F, ars, acs int, b, c []F, ldc int) {
	var c00, c01, c10, c11, c20, c21, c30, c31 F
	i, j := 0, 0
	for range k {
		b0, b1 := b[j], b[j+1]
		x := a[i]
		c00 += x * b0
		c01 += x * b1
		x = a[i+ars]
		c10 += x * b0
		c11 += x * b1
		x = a[i+2*ars]
		c20 += x * b0
		c21 += x * b1
		x = a[i+3*ars]
		c30 += x * b0
		c31 += x * b1
		i += acs
		j += 4
	}
	c[0] += c00
	c[1] += c01
	c[ldc] += c10
	c[ldc+1] += c11
	c[2*ldc] += c20
	c[2*ldc+1] += c21
	c[3*ldc] += c30
	c[3*ldc+1] += c31
}

// addGo is the plain add of a tile.
func addGo[F float](y []F, ldy int, e *[4]F, x []F) {
	y0, y1, y2, y3 := y[:len(x)], y[ldy:][:len(x)], y[2*ldy:][:len(x)], y[3*ldy:][:len(x)]
	e0, e1, e2, e3 := e[0], e[1], e[2], e[3]
	for i, v := range x {
		y0[i] += e0 * v
		y1[i] += e1 * v
		y2[i] += e2 * v
		y3[i] += e3 * v
	}
}
