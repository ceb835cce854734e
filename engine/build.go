package engine

import (
	"context"
	"errors"

	"bonsai/cache"
)

// Build brings want up to date and returns its outputs, in order.
func Build(ctx context.Context, g *Graph, want []*Artifact, opt Options) ([]cache.Output, error) {
	return nil, errors.New("not yet")
}
