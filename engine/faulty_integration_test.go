//go:build integration

package engine_test

import "testing"

func TestIntegrationBuildKilledAtEveryCall(t *testing.T) { killedBuild(t, 1) }
