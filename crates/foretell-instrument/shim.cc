// What the pass needs of LLVM's C++ interface: to be registered as a plugin, to split blocks, to
// append a constructor, and to read names from debug information. All else is in Rust.
#include "llvm-c/Core.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DebugProgramInstruction.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/MDBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Plugins/PassPlugin.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/BasicBlockUtils.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

extern "C" {
void foretell_prepare_module(LLVMModuleRef module);
LLVMBool foretell_simplify_function(LLVMValueRef function);
void foretell_instrument_module(LLVMModuleRef module);

// Views into LLVM's own strings; they live as long as the module.
struct ForetellLocation {
  const char *file;
  size_t file_length;
  const char *function;
  size_t function_length;
  unsigned line;
  unsigned column;
};
}

namespace {

// Invalid debug information counts as well: LLVM would drop it, and with it all source lines.
bool isValid(const Module &module, raw_ostream *complaints) {
  bool brokenDebugInfo = false;
  bool broken = verifyModule(module, complaints, &brokenDebugInfo);
  return !broken && !brokenDebugInfo;
}

// LLVM loads a variable before the branch that guards the load where that cannot trap. The program
// does not do so: a load behind a flag would become a race. In functions for ThreadSanitizer LLVM
// leaves such loads where they are, so until the accesses are instrumented all functions are.
constexpr const char *GUARDED = "foretell-guarded-loads";

void guardLoads(Module &module) {
  for (Function &function : module)
    if (!function.isDeclaration() && !function.hasFnAttribute(Attribute::SanitizeThread)) {
      function.addFnAttr(Attribute::SanitizeThread);
      function.addFnAttr(GUARDED);
    }
}

void releaseLoads(Module &module) {
  for (Function &function : module)
    if (function.hasFnAttribute(GUARDED)) {
      function.removeFnAttr(Attribute::SanitizeThread);
      function.removeFnAttr(GUARDED);
    }
}

struct Instrument : PassInfoMixin<Instrument> {
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
    releaseLoads(module);
    bool checks = std::getenv("FORETELL_VERIFY_IR") != nullptr;
    // What was broken before is not ours: clang would have said so, or does not mind.
    bool valid = checks && isValid(module, nullptr);
    foretell_instrument_module(wrap(&module));
    if (valid && !isValid(module, &errs()))
      reportFatalUsageError("foretell emitted invalid IR for " + Twine(module.getSourceFileName()));
    return PreservedAnalyses::none();
  }
  // Also at -O0, where optional passes are skipped.
  static bool isRequired() { return true; }
};

// Comes before all optimisation.
struct Prepare : PassInfoMixin<Prepare> {
  PreservedAnalyses run(Module &module, ModuleAnalysisManager &) {
    foretell_prepare_module(wrap(&module));
    guardLoads(module);
    return PreservedAnalyses::none();
  }
  static bool isRequired() { return true; }
};

// Comes again and again while functions are inlined and simplified.
struct Simplify : PassInfoMixin<Simplify> {
  PreservedAnalyses run(Function &function, FunctionAnalysisManager &) {
    bool changed = foretell_simplify_function(wrap(&function));
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
  }
};

void setFile(ForetellLocation *out, const DIFile *file) {
  if (!file)
    return;
  StringRef name = file->getFilename();
  out->file = name.data();
  out->file_length = name.size();
}

void setFunction(ForetellLocation *out, const DISubprogram *subprogram) {
  if (!subprogram)
    return;
  StringRef name = subprogram->getLinkageName();
  if (name.empty())
    name = subprogram->getName();
  out->function = name.data();
  out->function_length = name.size();
}

// The sources of Rust's libraries were compiled in a folder of this name; the headers of C++'s are in a
// folder of that.
bool isOfLibrary(const DIFile *file) {
  return file && (file->getDirectory().starts_with("/rustc/") ||
                  file->getFilename().split("/include/").second.contains("c++/"));
}

// The type without names for it and qualifiers.
const DIType *plainType(const DIType *type) {
  while (const auto *derived = dyn_cast_or_null<DIDerivedType>(type)) {
    switch (derived->getTag()) {
    case dwarf::DW_TAG_typedef:
    case dwarf::DW_TAG_const_type:
    case dwarf::DW_TAG_volatile_type:
    case dwarf::DW_TAG_restrict_type:
    case dwarf::DW_TAG_atomic_type:
      type = derived->getBaseType();
      break;
    default:
      return type;
    }
  }
  return type;
}

// The type's name without template arguments.
StringRef shortName(const DIType *type) { return type->getName().split('<').first; }

bool isInStd(const DIScope *scope) {
  for (; scope; scope = scope->getScope())
    if (isa<DINamespace>(scope) && (scope->getName() == "std" || scope->getName() == "__gnu_cxx"))
      return true;
  return false;
}

// Types of the library that are one thing to their users, and shown by the variable's name alone.
bool isAtom(StringRef name) {
  return name.starts_with("atomic") || name.starts_with("__atomic") || name.ends_with("mutex") ||
         name.starts_with("condition_variable") || name.ends_with("semaphore") ||
         name.ends_with("thread") || name == "once_flag" || name == "barrier" || name == "latch";
}

void appendLayout(const DIType *type, std::string &out, unsigned depth);

void appendArray(const DIType *element, ArrayRef<const Metadata *> ranges, std::string &out,
                 unsigned depth) {
  if (ranges.empty())
    return appendLayout(element, out, depth);
  uint64_t stride = element->getSizeInBits() / 8;
  for (const Metadata *range : ranges.drop_front()) {
    const auto *subrange = dyn_cast_or_null<DISubrange>(range);
    auto *count = subrange ? dyn_cast_if_present<ConstantInt *>(subrange->getCount()) : nullptr;
    stride *= count ? count->getZExtValue() : 0;
  }
  out += "[" + std::to_string(stride) + ":";
  appendArray(element, ranges.drop_front(), out, depth);
  out += "]";
}

// What a type consists of, in the words of foretell-record's `described`.
void appendLayout(const DIType *type, std::string &out, unsigned depth) {
  const auto *composite = dyn_cast_or_null<DICompositeType>(plainType(type));
  if (!composite || depth == 0)
    return;
  SmallVector<const Metadata *, 8> elements;
  for (const DINode *element : composite->getElements())
    elements.push_back(element);
  if (composite->getTag() == dwarf::DW_TAG_array_type) {
    const DIType *element = plainType(composite->getBaseType());
    if (element)
      appendArray(element, elements, out, depth - 1);
    return;
  }
  if (composite->getTag() == dwarf::DW_TAG_enumeration_type)
    return;
  // A mutex of the C library and the like are one thing, whatever they consist of.
  if (!isOfLibrary(composite->getFile()) && composite->getFile() &&
      composite->getFile()->getFilename().starts_with("/usr/include/"))
    return;
  StringRef name = shortName(composite);
  bool library = isInStd(composite->getScope());
  if (library && isAtom(name))
    return;
  if (library && name != "array" && name != "pair") {
    out += "(std::" + (name == "basic_string" ? "string" : name.str()) + ")";
    return;
  }
  out += "{";
  for (const Metadata *element : elements) {
    const auto *member = dyn_cast_or_null<DIDerivedType>(element);
    if (!member || member->isStaticMember())
      continue;
    StringRef called = member->getName();
    if (member->getTag() == dwarf::DW_TAG_inheritance || (library && name == "array"))
      called = "";
    else if (member->getTag() != dwarf::DW_TAG_member)
      continue;
    else if (called.starts_with("_vptr"))
      called = "vtable";
    out += std::to_string(member->getOffsetInBits() / 8) + ":" + called.str() + "=";
    appendLayout(member->getBaseType(), out, depth - 1);
    out += ";";
  }
  out += "}";
}

// A text that Rust takes over; freed with foretell_free. One that is too long for a record is none.
char *layoutText(const DIType *type) {
  std::string text;
  appendLayout(type, text, 6);
  return strdup(text.size() < 4000 ? text.c_str() : "");
}

} // namespace

extern "C" {

PassPluginLibraryInfo foretell_plugin_info() {
  return {LLVM_PLUGIN_API_VERSION, "foretell", "1", [](PassBuilder &builder) {
            builder.registerPipelineStartEPCallback(
                [](ModulePassManager &passes, OptimizationLevel) { passes.addPass(Prepare()); });
            builder.registerPeepholeEPCallback(
                [](FunctionPassManager &passes, OptimizationLevel) { passes.addPass(Simplify()); });
            builder.registerOptimizerLastEPCallback(
                [](ModulePassManager &passes, OptimizationLevel,
                   ThinOrFullLTOPhase) { passes.addPass(Instrument()); });
            builder.registerPipelineParsingCallback(
                [](StringRef name, ModulePassManager &passes,
                   ArrayRef<PassBuilder::PipelineElement>) {
                  if (name != "foretell")
                    return false;
                  passes.addPass(Instrument());
                  return true;
                });
          }};
}

// The instruction's place; where it was inlined, the innermost function that is not of the language's own
// libraries, if there is one.
void foretell_instruction_location(LLVMValueRef value, ForetellLocation *out) {
  const DILocation *location = unwrap<Instruction>(value)->getDebugLoc().get();
  if (!location)
    return;
  while (isOfLibrary(location->getFile()) && location->getInlinedAt())
    location = location->getInlinedAt();
  setFile(out, location->getFile());
  setFunction(out, location->getScope()->getSubprogram());
  out->line = location->getLine();
  out->column = location->getColumn();
}

// The linkage name of the function that the instruction was written in, for depth 0, or of the one into
// which that was inlined, and so on; gives whether there is one.
LLVMBool foretell_inlined_function(LLVMValueRef value, unsigned depth, ForetellLocation *out) {
  const DILocation *location = unwrap<Instruction>(value)->getDebugLoc().get();
  for (; location && depth; depth--)
    location = location->getInlinedAt();
  if (location)
    setFunction(out, location->getScope()->getSubprogram());
  return location != nullptr;
}

void foretell_function_location(LLVMValueRef value, ForetellLocation *out) {
  const DISubprogram *subprogram = unwrap<Function>(value)->getSubprogram();
  if (!subprogram)
    return;
  setFile(out, subprogram->getFile());
  setFunction(out, subprogram);
  out->line = subprogram->getLine();
}

// A global's declaration; `function` is the variable's name in the source.
void foretell_global_location(LLVMValueRef value, ForetellLocation *out) {
  SmallVector<DIGlobalVariableExpression *, 1> expressions;
  unwrap<GlobalVariable>(value)->getDebugInfo(expressions);
  if (expressions.empty())
    return;
  const DIGlobalVariable *variable = expressions[0]->getVariable();
  setFile(out, variable->getFile());
  StringRef name = variable->getLinkageName();
  if (name.empty())
    name = variable->getName();
  out->function = name.data();
  out->function_length = name.size();
  out->line = variable->getLine();
}

// Whether a function is of the language's own library.
LLVMBool foretell_is_of_library(LLVMValueRef value) {
  const DISubprogram *subprogram = unwrap<Function>(value)->getSubprogram();
  return subprogram && isOfLibrary(subprogram->getFile());
}

// What a global variable consists of.
char *foretell_global_layout(LLVMValueRef value) {
  SmallVector<DIGlobalVariableExpression *, 1> expressions;
  unwrap<GlobalVariable>(value)->getDebugInfo(expressions);
  return layoutText(expressions.empty() ? nullptr : expressions[0]->getVariable()->getType());
}

// What a stack variable consists of; its name and the linkage name of its function in `out`, where the
// program declares it.
char *foretell_local_layout(LLVMValueRef value, ForetellLocation *name, ForetellLocation *function) {
  SmallVector<DbgVariableRecord *, 2> declares;
  append_range(declares, findDVRDeclares(unwrap(value)));
  append_range(declares, at::getDVRAssignmentMarkers(unwrap<Instruction>(value)));
  for (const DbgVariableRecord *declare : declares) {
    const DILocalVariable *variable = declare->getVariable();
    const DISubprogram *subprogram = variable->getScope()->getSubprogram();
    if (!subprogram || isOfLibrary(subprogram->getFile()) || variable->isArtificial())
      continue;
    StringRef called = variable->getName();
    name->function = called.data();
    name->function_length = called.size();
    setFunction(function, subprogram);
    const DIType *type = plainType(variable->getType());
    return layoutText(type);
  }
  return strdup("");
}

// What a call of `new` makes: the name of its type in `name`, and what that consists of. Null where the
// program does not say.
char *foretell_new_layout(LLVMValueRef value, ForetellLocation *name) {
  const auto *type =
      dyn_cast_or_null<DIType>(unwrap<Instruction>(value)->getMetadata("heapallocsite"));
  if (!type || type->getName().empty())
    return nullptr;
  name->function = type->getName().data();
  name->function_length = shortName(type).size();
  return layoutText(type);
}

// Gives a string to be freed with foretell_free.
char *foretell_demangle(const char *name, size_t length) {
  return strdup(demangle(std::string_view(name, length)).c_str());
}

void foretell_free(char *text) { free(text); }

// Splits the block before `before` so that a new block runs if `condition` holds; gives that
// block's terminator. The new block is marked unlikely if `cold`.
LLVMValueRef foretell_split_if(LLVMValueRef condition, LLVMValueRef before, LLVMBool cold) {
  auto *place = unwrap<Instruction>(before);
  MDNode *weights =
      cold ? MDBuilder(place->getContext()).createUnlikelyBranchWeights() : nullptr;
  return wrap(SplitBlockAndInsertIfThen(unwrap(condition), place->getIterator(),
                                        /*Unreachable=*/false, weights));
}

// Splits the block before `before` into two ways that meet there again; gives the terminators of the
// blocks for when `condition` holds, which is likely, and for when it does not.
void foretell_split_ways(LLVMValueRef condition, LLVMValueRef before, LLVMValueRef *holds,
                         LLVMValueRef *fails) {
  auto *place = unwrap<Instruction>(before);
  MDNode *weights = MDBuilder(place->getContext()).createLikelyBranchWeights();
  Instruction *then = nullptr, *otherwise = nullptr;
  SplitBlockAndInsertIfThenElse(unwrap(condition), place->getIterator(), &then, &otherwise,
                                weights);
  *holds = wrap(then);
  *fails = wrap(otherwise);
}

// Puts a test whether the switch goes to this block of its successors before the switch.
void foretell_test_before_switch(LLVMValueRef value, LLVMBasicBlockRef successor) {
  auto *choice = unwrap<SwitchInst>(value);
  BasicBlock *to = unwrap(successor), *block = choice->getParent();
  bool is_default = choice->getDefaultDest() == to;
  IRBuilder<> builder(choice);
  Value *any = builder.getFalse();
  for (auto &one : choice->cases())
    if ((one.getCaseSuccessor() == to) != is_default)
      any = builder.CreateOr(any, builder.CreateICmpEQ(choice->getCondition(), one.getCaseValue()));
  if (is_default)
    any = builder.CreateNot(any);
  BasicBlock *rest = SplitBlock(block, choice);
  auto *test = BranchInst::Create(to, rest, any, block->getTerminator()->getIterator());
  test->setDebugLoc(choice->getDebugLoc());
  block->getTerminator()->eraseFromParent();
  for (PHINode &phi : to->phis())
    phi.addIncoming(phi.getIncomingValueForBlock(rest), block);
}

// Makes the normal destination of the invoke a block that only the invoke reaches, and gives the
// instruction before which its result can be used.
LLVMValueRef foretell_after_invoke(LLVMValueRef value) {
  auto *invoke = unwrap<InvokeInst>(value);
  BasicBlock *normal = invoke->getNormalDest();
  if (!normal->getSinglePredecessor())
    normal = SplitEdge(invoke->getParent(), normal);
  return wrap(&*normal->getFirstInsertionPt());
}

// The first instruction of the block before which code can be inserted; null if there is none.
LLVMValueRef foretell_first_insertion_point(LLVMBasicBlockRef block) {
  BasicBlock *basic = unwrap(block);
  auto place = basic->getFirstInsertionPt();
  return place == basic->end() ? nullptr : wrap(&*place);
}

void foretell_append_constructor(LLVMModuleRef module, LLVMValueRef function, int priority) {
  appendToGlobalCtors(*unwrap(module), unwrap<Function>(function), priority);
}

// The bytes behind a pointer argument that is passed by value, 0 if it is not.
uint64_t foretell_by_value_size(LLVMValueRef value, unsigned argument) {
  auto *call = unwrap<CallBase>(value);
  if (!call->isByValArgument(argument))
    return 0;
  return call->getModule()->getDataLayout().getTypeAllocSize(
      call->getParamByValType(argument));
}

// Whether a function's parameter is a pointer to a copy that belongs to the callee.
LLVMBool foretell_is_by_value_parameter(LLVMValueRef parameter) {
  return unwrap<Argument>(parameter)->hasPassPointeeByValueCopyAttr();
}

LLVMBool foretell_returns_twice(LLVMValueRef value) {
  return unwrap<CallBase>(value)->hasFnAttr(Attribute::ReturnsTwice);
}
}
