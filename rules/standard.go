package rules

import (
	"runtime"

	"bonsai/ops/mlx"
)

// Settings are what ops compute with. They never change a result.
type Settings struct {
	Engine  *mlx.Engine // opened when the first op needs it
	Threads int         // of kernels; 0 for one a CPU
	Rate    float64     // floating-point operations a second, to estimate times
}

// Standard is the catalogue that bonsai ships.
func Standard(s Settings) Catalogue {
	return Catalogue{
		"calibration": calibrationRule{},
		"checkpoint":  checkpointRule{},
		"codes":       codesRule{s},
		"dataset":     datasetRule{},
		"endpoints":   endpointsRule{s},
		"evaluation":  evaluationRule{s},
		"gguf":        ggufRule{s},
		"rotation":    rotationRule{},
	}
}

// threads returns how many threads a kernel runs on.
func (s Settings) threads() int {
	if s.Threads > 0 {
		return s.Threads
	}
	return runtime.GOMAXPROCS(0)
}
