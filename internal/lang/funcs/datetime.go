package funcs

import (
	"errors"
	"time"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
	"github.com/zclconf/go-cty/cty/function/stdlib"
)

// datetime returns the functions for given times, which are strings as in RFC 3339.
func datetime() family {
	return family{
		"formatdate": guarded(stdlib.FormatDateFunc),
		"timeadd":    guarded(stdlib.TimeAddFunc),
		"timecmp": onStrings("Compares two times and returns -1, 0 or 1, as the first is before, at or after the second.",
			cty.Number, timeCompare, "timestamp_a", "timestamp_b"),
	}
}

func timeCompare(c call) (cty.Value, error) {
	a, err := parseTime(c, 0)
	if err != nil {
		return cty.NilVal, err
	}
	b, err := parseTime(c, 1)
	if err != nil {
		return cty.NilVal, err
	}
	return cty.NumberIntVal(int64(a.Compare(b))), nil
}

// parseTime parses argument i of c. It uses timeadd to accept exactly the strict form of RFC
// 3339, so that all functions accept the same times and return the same errors.
func parseTime(c call, i int) (time.Time, error) {
	if _, err := stdlib.TimeAdd(c.args[i], cty.StringVal("0s")); err != nil {
		if c.secret[i] {
			return time.Time{}, function.NewArgErrorf(i, "not a valid RFC3339 timestamp")
		}
		return time.Time{}, function.NewArgErrorf(i, "%s", err)
	}
	t, err := time.Parse(time.RFC3339, c.text(i))
	if err != nil {
		return time.Time{}, function.NewArgErrorf(i, "not a valid RFC3339 timestamp")
	}
	return t, nil
}

// clock returns the functions that depend on the current time.
func clock(c Config) family {
	now := timeFunc("Returns the time at which it is called, in UTC, as in RFC 3339.", func() (cty.Value, error) {
		if c.Now == nil {
			return cty.NilVal, errors.New("the current time is not available here")
		}
		return cty.StringVal(c.Now().UTC().Format(time.RFC3339)), nil
	})
	if c.PureOnly {
		now = function.Unpredictable(now)
	}
	fs := family{"timestamp": now}
	if !c.Console {
		fs["plantimestamp"] = timeFunc("Returns the time at which the plan was made, in UTC, as in RFC 3339.", func() (cty.Value, error) {
			if c.PlanTime.IsZero() {
				return cty.UnknownVal(cty.String), nil
			}
			return cty.StringVal(c.PlanTime.UTC().Format(time.RFC3339)), nil
		})
	}
	both := make(family, 4)
	addBoth(both, fs)
	return both
}

func timeFunc(about string, f func() (cty.Value, error)) function.Function {
	return function.New(&function.Spec{
		Description:  about,
		Type:         function.StaticReturnType(cty.String),
		RefineResult: notNull,
		Impl:         func([]cty.Value, cty.Type) (cty.Value, error) { return f() },
	})
}
