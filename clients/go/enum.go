package durablememory

import (
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// The enums of the contract are strings here: the name of the value without the prefix of its enum, so they print, log
// and serialise as what they are. A value of a newer server is named after its number, UNKNOWN_7, and travels back
// unchanged.

// wireEnum is an enum of the stubs.
type wireEnum interface {
	~int32
	protoreflect.Enum
}

// invalidNumber stands for a name that the enum does not have: the service refuses it, naming the field.
const invalidNumber = -1

// fromEnum is the name of a value of the stubs; empty for UNSPECIFIED, which only a service that says nothing sends.
func fromEnum[E ~string, W wireEnum](value W) E {
	if value.Number() == 0 {
		return ""
	}
	values := value.Descriptor().Values()
	known := values.ByNumber(value.Number())
	if known == nil {
		return E(unknown + "_" + strconv.Itoa(int(value.Number())))
	}
	return E(strings.TrimPrefix(string(known.Name()), enumPrefix(value.Descriptor())))
}

// toEnum is the value of the stubs with this name; UNSPECIFIED for the empty one.
func toEnum[W wireEnum, E ~string](name E) W {
	var zero W
	if name == "" {
		return zero
	}
	descriptor := zero.Descriptor()
	if value := descriptor.Values().ByName(protoreflect.Name(enumPrefix(descriptor) + string(name))); value != nil {
		return W(value.Number())
	}
	if digits, ok := strings.CutPrefix(string(name), unknown+"_"); ok {
		if number, err := strconv.ParseInt(digits, 10, 32); err == nil {
			return W(number)
		}
	}
	return invalidNumber
}

// toOptionalEnum is nil for the empty name.
func toOptionalEnum[W wireEnum, E ~string](name E) *W {
	if name == "" {
		return nil
	}
	return new(toEnum[W](name))
}

func fromEnums[E ~string, W wireEnum](values []W) []E { return each(values, fromEnum[E, W]) }

func toEnums[W wireEnum, E ~string](names []E) []W { return each(names, toEnum[W, E]) }

func enumPrefix(descriptor protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(descriptor.Values().ByNumber(0).Name()), "UNSPECIFIED")
}

// each converts every element; nil stays nil.
func each[From, To any](elements []From, convert func(From) To) []To {
	if elements == nil {
		return nil
	}
	converted := make([]To, len(elements))
	for i, element := range elements {
		converted[i] = convert(element)
	}
	return converted
}
