package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/textproto"
	"strconv"

	"github.com/creachadair/jrpc2/channel"
)

// mostMessage is the size in bytes of the largest message of an editor that is read. A
// message holds one file at most.
const mostMessage = 64 << 20

// A framed connection has the messages of the Language Server Protocol, each after a head
// with its length. Unlike that of channel.LSP, a head that is wrong costs no memory and
// no panic, and any Content-Type will do: the protocol has two spellings of the only one.
type framed struct {
	channel.Channel // for what is sent
	in              *bufio.Reader
}

// newFramed returns the connection over in and out. It does not close out.
func newFramed(in io.Reader, out io.Writer) framed {
	return framed{channel.LSP(nil, unclosed{out}), bufio.NewReader(in)}
}

// Recv implements channel.Channel.
func (f framed) Recv() ([]byte, error) {
	head, err := textproto.NewReader(f.in).ReadMIMEHeader()
	if err != nil {
		if wrong, ok := errors.AsType[textproto.ProtocolError](err); ok {
			return nil, fmt.Errorf("no message of the Language Server Protocol: %w", wrong)
		}
		return nil, err
	}
	length := head.Get("Content-Length")
	size, err := strconv.Atoi(length)
	if err != nil || size < 0 || size > mostMessage {
		return nil, fmt.Errorf("message with Content-Length %q: a number up to %d is expected", length, mostMessage)
	}
	message := make([]byte, size)
	if _, err := io.ReadFull(f.in, message); err != nil {
		return nil, err
	}
	return message, nil
}

// unclosed is a writer that others do not close.
type unclosed struct{ io.Writer }

// Close implements io.Closer.
func (unclosed) Close() error { return nil }
