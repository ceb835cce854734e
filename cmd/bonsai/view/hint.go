package view

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"syscall"

	"bonsai/cache"
	"bonsai/engine"
	"bonsai/engine/record"
	"bonsai/kernels"
	"bonsai/ops/gguf"
	"bonsai/ops/mlx"
	"bonsai/ops/model"
	"bonsai/ops/prism"
	"bonsai/ops/quantize"
	"bonsai/ops/safetensors"
	"bonsai/recipes"
)

// Error writes an error, each of those it joins by itself, with advice where there is
// some.
func Error(w io.Writer, err error, s Style) {
	p := s.palette()
	for _, err := range apart(err) {
		if m, ok := errors.AsType[*MistakesError](err); ok {
			m.Write(w, s)
			continue
		}
		if errors.Is(err, context.Canceled) {
			continue
		}
		fmt.Fprint(w, p.bad.Render("error: "), strings.TrimLeft(wrap(printable(err.Error()), "       ", s.prose()), " "))
		if p, ok := errors.AsType[*engine.PanicError](err); ok {
			fmt.Fprintf(w, "%s\n", p.Stack)
		}
		if h := hint(err); h != "" {
			fmt.Fprint(w, wrap(h, "  ", s.prose()))
		}
	}
}

// apart returns the errors that errors.Join made one of.
func apart(err error) (list []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		list = append(list, apart(e)...)
	}
	return list
}

// hint returns what a user can do about err, or "". It is the only place for advice.
func hint(err error) string {
	return cmp.Or(dataHint(err), buildHint(err), systemHint(err), goOnHint(err))
}

// systemHint is about what the operating system refuses.
func systemHint(err error) string {
	switch {
	case errors.Is(err, syscall.EDQUOT):
		return "Your quota on this disk is used up. Nothing finished is lost: make room, or give another folder with cache= " +
			"or BONSAI_CACHE, and build again."
	case errors.Is(err, syscall.ENOTDIR):
		return "A part of the path is a file where a folder must be: give another one with cache= or out=, or move the file away."
	case errors.Is(err, syscall.EISDIR):
		return "A folder is there, where a file is meant: give another path, or move the folder away."
	case errors.Is(err, syscall.ENAMETOOLONG):
		return "The file system takes no name as long as this: shorten it in the recipe, or choose a shorter path."
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "Raise the limit of open files (ulimit -n), or build with fewer workers=."
	case errors.Is(err, syscall.EIO):
		return "The disk or the network could not read or write: check it first. What is finished is kept."
	case errors.Is(err, syscall.EROFS):
		return "The file system is mounted read-only: give a folder on another one with cache= or out=."
	case errors.Is(err, fs.ErrPermission):
		return "Check who owns the file or the folder, and its permissions. The cache may be elsewhere: cache= or BONSAI_CACHE."
	default:
		return ""
	}
}

// goOnHint is for failures that nothing else is known about.
func goOnHint(err error) string {
	if e, ok := errors.AsType[*engine.ActionError](err); ok {
		kept := "What was finished is kept: the next build goes on from there."
		if e.Logged {
			kept += " All that the action said: bonsai log " + e.Step
		}
		return kept
	}
	return ""
}

// dataHint is about files that do not hold what they should.
func dataHint(err error) string {
	switch {
	case is[*safetensors.NotFiniteError](err), is[*gguf.NotFiniteError](err):
		return "The checkpoint is damaged, or was when it was saved: no method makes a number of this. " +
			"Download or save it again."
	case errors.Is(err, safetensors.ErrFormat), errors.Is(err, gguf.ErrFormat):
		return "The file is damaged or was not copied whole: compare its size with the original and copy it again."
	case errors.Is(err, safetensors.ErrMissing), errors.Is(err, gguf.ErrMissing):
		return "The file is of another model, or was not copied whole: bonsai inspect all=true lists what it holds."
	case is[*gguf.CodeError](err):
		return "This file holds weights of four values, not three: it was not made for a ternary model."
	case errors.Is(err, prism.ErrMismatch):
		return "The file was not placed. If the disk is sound this is a fault of bonsai: please report it " +
			"with the recipe."
	case errors.Is(err, model.ErrUnsupported):
		return "bonsai help method lists the models that can be made ternary."
	case is[*model.TensorsError](err):
		return "config.json and the weights are of different models, or a file is missing: " +
			"copy the checkpoint's folder as a whole."
	case is[*model.NonFiniteError](err):
		return "The original model gives no numbers either on this text, or a weight is far out of range: " +
			"bonsai eval of the checkpoint against itself shows which."
	case is[*quantize.FactorError](err), is[*kernels.NotPositiveError](err):
		return "Too little or too uniform text was calibrated on: take more blocks, or raise damping in the codes block."
	default:
		return ""
	}
}

// buildHint is about the build and the machine it runs on.
func buildHint(err error) string {
	switch {
	case errors.Is(err, cache.ErrFull):
		return "Nothing finished is lost: make room, or give another folder with cache= or BONSAI_CACHE, and build again."
	case errors.Is(err, cache.ErrNoLocks):
		return "Two builds at once may do the same work twice; nothing else changes. Give a folder on a local disk " +
			"with cache= or BONSAI_CACHE to avoid it."
	case errors.Is(err, cache.ErrReadOnly):
		return "Give a folder that you may write with cache= or BONSAI_CACHE."
	case errors.Is(err, cache.ErrBundle):
		return "Nothing of it is used. Copy the file again, or export it again: what came whole is not written twice."
	case is[*cache.KeptError](err):
		return "bonsai cache unpin NAME lets go of it; a build lets go when it ends."
	case is[*cache.PinError](err):
		return "Nothing is dropped while it is not known what a pin keeps: bonsai cache unpin NAME, and pin it again."
	case errors.Is(err, cache.ErrCorrupt), is[*cache.FormatError](err):
		return "What was damaged is set aside: build again and it is made anew. If it comes back, check the disk."
	case errors.Is(err, cache.ErrMiss), is[*cache.MissError](err):
		return "Something deleted it from the cache: build again."
	case errors.Is(err, engine.ErrChanged):
		return "Build again once nothing writes to the file any more."
	case errors.Is(err, mlx.ErrBackend):
		return "backend=go always works; bonsai version says what this build has."
	case is[*engine.MemoryError](err):
		return "Nothing ran. Close other programs, give a larger memory=, or lower n or length in the calibration block."
	case is[*engine.TimeoutError](err):
		return "Nothing finished is lost. If it only needs longer, raise timeout= or that in the step's resources block."
	case is[*engine.PanicError](err):
		return "This is a fault of bonsai: please report it with the lines above."
	case is[*record.NotFoundError](err):
		return "bonsai runs lists the runs that are recorded."
	case is[*PlanFileError](err):
		return "Make the plan again: bonsai plan with out=."
	case is[*StaleError](err):
		return "Nothing ran. Make the plan again with bonsai plan out=, and look at what is new in it."
	case is[*recipes.TargetError](err):
		return "bonsai build without target= lists the targets."
	case is[*engine.SourceError](err) && errors.Is(err, fs.ErrNotExist):
		return "The file was there when the recipe was read. Put it back, or change the recipe."
	default:
		return ""
	}
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}
