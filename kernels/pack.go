package kernels

// packStrips packs k rows of cols columns of b, tileRows columns at a time: strip after strip
// of k·tileRows elements.
func packStrips[F float](dst []F, b mat[F], k, cols int) {
	const line = 16 // columns that share a cache line
	for j := 0; j < cols; j += line {
		w := min(line, cols-j)
		if b.cs == 1 && w == line {
			packLine(dst[j*k:(j+line)*k], b.from(0, j), k)
			continue
		}
		for i := 0; i < w; i += tileRows {
			pack(dst[(j+i)*k:(j+i+tileRows)*k], b.from(0, j+i), k, min(tileRows, w-i), tileRows)
		}
	}
}

// packLine is packStrips for 16 contiguous columns.
func packLine[F float](dst []F, b mat[F], k int) {
	d0, d1, d2, d3 := dst[:4*k], dst[4*k:8*k], dst[8*k:12*k], dst[12*k:16*k]
	for l := range k {
		row := (*[16]F)(b.x[l*b.rs:])
		*(*[4]F)(d0[4*l:]) = [4]F(row[0:])
		*(*[4]F)(d1[4*l:]) = [4]F(row[4:])
		*(*[4]F)(d2[4*l:]) = [4]F(row[8:])
		*(*[4]F)(d3[4*l:]) = [4]F(row[12:])
	}
}

// pack copies k rows of cols columns of b to dst, row by row, width columns a row; those beyond
// cols become zero.
func pack[F float](dst []F, b mat[F], k, cols, width int) {
	if b.cs == 1 {
		for l := range k {
			d := dst[l*width : (l+1)*width]
			copy(d, b.x[l*b.rs:][:cols])
			clear(d[cols:])
		}
		return
	}
	j := 0
	for ; b.rs == 1 && j+4 <= cols; j += 4 {
		packColumns(dst[j:], b.from(0, j), k, width)
	}
	for ; j < width; j++ {
		for l := range k {
			if j < cols {
				dst[l*width+j] = b.x[l*b.rs+j*b.cs]
			} else {
				dst[l*width+j] = 0
			}
		}
	}
}

// packColumns is pack for four contiguous columns of b.
func packColumns[F float](dst []F, b mat[F], k, width int) {
	c0, c1, c2, c3 := b.x[:k], b.x[b.cs:][:k], b.x[2*b.cs:][:k], b.x[3*b.cs:][:k]
	for l, v := range c0 {
		*(*[4]F)(dst[l*width:]) = [4]F{v, c1[l], c2[l], c3[l]}
	}
}
