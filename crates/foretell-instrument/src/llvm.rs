//! The part of LLVM's C interface that the pass uses, as small copyable handles.
//!
//! LLVM owns everything; a handle is a borrowed pointer into the module that the compiler gave us.
//! The handles' methods are safe to write down because the pass runs alone on its module, never
//! deletes an instruction, and drops all handles before it returns. LLVM itself checks operand
//! kinds only by assertion, so each method says what it may be called on.

use foretell_abi::{Hook, Order, RmwKind, Scalar};
use llvm_sys::core::*;
use llvm_sys::debuginfo::LLVMInstructionGetDebugLoc;
use llvm_sys::prelude::*;
use llvm_sys::target::{
    LLVMABISizeOfType, LLVMGetModuleDataLayout, LLVMOffsetOfElement, LLVMStoreSizeOfType,
    LLVMTargetDataRef,
};
use llvm_sys::{LLVMAttributeFunctionIndex, LLVMLinkage, LLVMOpcode, LLVMTypeKind};
use std::ffi::{CString, c_char, c_int};
use std::ptr;

pub use llvm_sys::LLVMIntPredicate as Predicate;
pub use llvm_sys::LLVMOpcode as Opcode;
pub use llvm_sys::LLVMTypeKind as TypeKind;

const UNNAMED: *const c_char = c"".as_ptr();
/// The argument of `memcpy`, `memmove` and `memset` as intrinsics that says whether they are volatile.
const VOLATILE_ARGUMENT: u32 = 3;

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Type(pub LLVMTypeRef);

/// A value: constant, argument, global or instruction.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Value(pub LLVMValueRef);

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Block(pub LLVMBasicBlockRef);

/// A place in the source, as the shim gives it.
#[repr(C)]
struct RawLocation {
    file: *const u8,
    file_length: usize,
    function: *const u8,
    function_length: usize,
    line: u32,
    column: u32,
}

/// A place in the source; empty where unknown.
#[derive(Clone, Debug, Default)]
pub struct Location {
    /// File name.
    pub file: String,
    /// Linkage name of the function or variable.
    pub name: String,
    /// 1-based line.
    pub line: u32,
    /// 1-based column.
    pub column: u32,
}

unsafe extern "C" {
    fn foretell_instruction_location(value: LLVMValueRef, out: *mut RawLocation);
    fn foretell_inlined_function(
        value: LLVMValueRef,
        depth: u32,
        out: *mut RawLocation,
    ) -> LLVMBool;
    fn foretell_function_location(value: LLVMValueRef, out: *mut RawLocation);
    fn foretell_global_location(value: LLVMValueRef, out: *mut RawLocation);
    fn foretell_is_of_library(function: LLVMValueRef) -> LLVMBool;
    fn foretell_global_layout(global: LLVMValueRef) -> *mut c_char;
    fn foretell_local_layout(
        alloca: LLVMValueRef,
        name: *mut RawLocation,
        function: *mut RawLocation,
    ) -> *mut c_char;
    fn foretell_new_layout(call: LLVMValueRef, name: *mut RawLocation) -> *mut c_char;
    fn foretell_demangle(name: *const u8, length: usize) -> *mut c_char;
    fn foretell_free(text: *mut c_char);
    fn foretell_split_if(
        condition: LLVMValueRef,
        before: LLVMValueRef,
        cold: LLVMBool,
    ) -> LLVMValueRef;
    fn foretell_split_ways(
        condition: LLVMValueRef,
        before: LLVMValueRef,
        holds: *mut LLVMValueRef,
        fails: *mut LLVMValueRef,
    );
    fn foretell_test_before_switch(value: LLVMValueRef, successor: LLVMBasicBlockRef);
    fn foretell_after_invoke(value: LLVMValueRef) -> LLVMValueRef;
    fn foretell_first_insertion_point(block: LLVMBasicBlockRef) -> LLVMValueRef;
    fn foretell_append_constructor(module: LLVMModuleRef, function: LLVMValueRef, priority: c_int);
    fn foretell_by_value_size(value: LLVMValueRef, argument: u32) -> u64;
    fn foretell_is_by_value_parameter(parameter: LLVMValueRef) -> LLVMBool;
    fn foretell_returns_twice(value: LLVMValueRef) -> LLVMBool;
}

impl RawLocation {
    const UNKNOWN: RawLocation = RawLocation {
        file: ptr::null(),
        file_length: 0,
        function: ptr::null(),
        function_length: 0,
        line: 0,
        column: 0,
    };
}

fn location(value: Value, read: unsafe extern "C" fn(LLVMValueRef, *mut RawLocation)) -> Location {
    let mut raw = RawLocation::UNKNOWN;
    unsafe { read(value.0, &mut raw) };
    Location {
        file: unsafe { text(raw.file, raw.file_length) },
        name: unsafe { text(raw.function, raw.function_length) },
        line: raw.line,
        column: raw.column,
    }
}

/// # Safety
/// `start` is null or points to `length` bytes.
unsafe fn text(start: *const u8, length: usize) -> String {
    if start.is_null() {
        return String::new();
    }
    String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(start, length) }).into_owned()
}

/// A string for LLVM; names from LLVM contain no NUL, and one that did would be cut there.
fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

/// The name as a programmer writes it; names that are not mangled stay as they are.
pub fn demangle(name: &str) -> String {
    let raw = unsafe { foretell_demangle(name.as_ptr(), name.len()) };
    unsafe { taken(raw) }.unwrap_or_else(|| name.to_owned())
}

/// A text that the shim gives away; `None` where it gives none.
///
/// # Safety
/// `raw` is null or a text of the shim's that nobody else has.
unsafe fn taken(raw: *mut c_char) -> Option<String> {
    if raw.is_null() {
        return None;
    }
    let text = unsafe { std::ffi::CStr::from_ptr(raw) }.to_string_lossy().into_owned();
    unsafe { foretell_free(raw) };
    Some(text)
}

/// What debug information says of a piece of memory.
#[derive(Clone, Debug, Default)]
pub struct Description {
    /// Of the variable, or of the type of what `new` makes.
    pub name: String,
    /// Linkage name of the function that declares it; empty where there is none.
    pub function: String,
    /// What it consists of, in the words of `foretell-record`'s `described`.
    pub layout: String,
}

impl Type {
    /// What sort of type.
    pub fn kind(self) -> TypeKind {
        unsafe { LLVMGetTypeKind(self.0) }
    }

    /// Bits of an integer type.
    pub fn integer_width(self) -> u32 {
        unsafe { LLVMGetIntTypeWidth(self.0) }
    }

    /// Bits of a scalar that can have a shadow: an integer of up to 64 bits, a pointer in the
    /// ordinary address space, a `float` or `double`.
    pub fn scalar_width(self) -> Option<u32> {
        match self.kind() {
            LLVMTypeKind::LLVMIntegerTypeKind => Some(self.integer_width()).filter(|w| *w <= 64),
            LLVMTypeKind::LLVMPointerTypeKind => {
                (unsafe { LLVMGetPointerAddressSpace(self.0) } == 0).then_some(64)
            }
            LLVMTypeKind::LLVMFloatTypeKind => Some(32),
            LLVMTypeKind::LLVMDoubleTypeKind => Some(64),
            _ => None,
        }
    }

    /// Whether it is `float` or `double`.
    pub fn is_scalar_float(self) -> bool {
        matches!(self.kind(), LLVMTypeKind::LLVMFloatTypeKind | LLVMTypeKind::LLVMDoubleTypeKind)
    }

    /// Whether it is any floating-point type or a vector of one.
    pub fn is_float_like(self) -> bool {
        use LLVMTypeKind::*;
        match self.kind() {
            LLVMVectorTypeKind | LLVMScalableVectorTypeKind => {
                Type(unsafe { LLVMGetElementType(self.0) }).is_float_like()
            }
            LLVMHalfTypeKind
            | LLVMBFloatTypeKind
            | LLVMFloatTypeKind
            | LLVMDoubleTypeKind
            | LLVMX86_FP80TypeKind
            | LLVMFP128TypeKind
            | LLVMPPC_FP128TypeKind => true,
            _ => false,
        }
    }

    /// The scalars of a flat struct or array of at most `limit` members; `None` for other types.
    pub fn flat_members(self, limit: usize) -> Option<Vec<Type>> {
        let members: Vec<Type> = match self.kind() {
            LLVMTypeKind::LLVMStructTypeKind => {
                let count = unsafe { LLVMCountStructElementTypes(self.0) };
                if count as usize > limit {
                    return None;
                }
                (0..count).map(|k| Type(unsafe { LLVMStructGetTypeAtIndex(self.0, k) })).collect()
            }
            LLVMTypeKind::LLVMArrayTypeKind => {
                let count = unsafe { LLVMGetArrayLength2(self.0) };
                if count > limit as u64 {
                    return None;
                }
                vec![self.element(); count as usize]
            }
            _ => return None,
        };
        members.iter().all(|m| m.scalar_width().is_some()).then_some(members)
    }

    /// Type of the elements of an array or vector type.
    pub fn element(self) -> Type {
        Type(unsafe { LLVMGetElementType(self.0) })
    }

    /// Type of a struct's member.
    pub fn member(self, index: u32) -> Type {
        Type(unsafe { LLVMStructGetTypeAtIndex(self.0, index) })
    }
}

impl Value {
    /// Null becomes `None`.
    fn wrap(raw: LLVMValueRef) -> Option<Value> {
        (!raw.is_null()).then_some(Value(raw))
    }

    /// The type.
    pub fn ty(self) -> Type {
        Type(unsafe { LLVMTypeOf(self.0) })
    }

    /// The symbol's or value's name; empty for unnamed values.
    pub fn name(self) -> String {
        let mut length = 0;
        let start = unsafe { LLVMGetValueName2(self.0, &mut length) };
        unsafe { text(start.cast(), length) }
    }

    /// Of an instruction.
    pub fn opcode(self) -> Opcode {
        unsafe { LLVMGetInstructionOpcode(self.0) }
    }

    /// The instruction's operator if the value is an instruction.
    pub fn instruction_opcode(self) -> Option<Opcode> {
        (!unsafe { LLVMIsAInstruction(self.0) }.is_null()).then(|| self.opcode())
    }

    /// How many operands a user (instruction or constant expression) has.
    pub fn operand_count(self) -> u32 {
        unsafe { LLVMGetNumOperands(self.0) }.max(0) as u32
    }

    /// An operand of a user.
    pub fn operand(self, index: u32) -> Value {
        Value(unsafe { LLVMGetOperand(self.0, index) })
    }

    /// All operands that are values (a block or piece of metadata is none).
    pub fn operands(self) -> impl Iterator<Item = Value> {
        (0..self.operand_count()).map(move |k| self.operand(k)).filter(|v| !v.0.is_null())
    }

    /// Whether anything uses the value.
    pub fn is_used(self) -> bool {
        !unsafe { LLVMGetFirstUse(self.0) }.is_null()
    }

    /// The instructions (and constants) that use the value, once per use.
    pub fn users(self) -> Vec<Value> {
        let mut users = Vec::new();
        let mut current = unsafe { LLVMGetFirstUse(self.0) };
        while !current.is_null() {
            users.push(Value(unsafe { LLVMGetUser(current) }));
            current = unsafe { LLVMGetNextUse(current) };
        }
        users
    }

    /// The next instruction in the block.
    pub fn next(self) -> Option<Value> {
        Value::wrap(unsafe { LLVMGetNextInstruction(self.0) })
    }

    /// The previous instruction in the block.
    pub fn previous(self) -> Option<Value> {
        Value::wrap(unsafe { LLVMGetPreviousInstruction(self.0) })
    }

    /// Whether the value is a constant (globals and constant expressions too).
    pub fn is_constant(self) -> bool {
        unsafe { LLVMIsConstant(self.0) != 0 }
    }

    /// The value of a constant integer of up to 64 bits, sign-extended.
    pub fn constant_integer(self) -> Option<i64> {
        let constant = unsafe { LLVMIsAConstantInt(self.0) };
        (!constant.is_null() && self.ty().integer_width() <= 64)
            .then(|| unsafe { LLVMConstIntGetSExtValue(constant) })
    }

    /// The value of a constant integer of up to 64 bits, zero-extended.
    pub fn constant_unsigned(self) -> Option<u64> {
        let constant = unsafe { LLVMIsAConstantInt(self.0) };
        (!constant.is_null() && self.ty().integer_width() <= 64)
            .then(|| unsafe { LLVMConstIntGetZExtValue(constant) })
    }

    /// Whether the value is zero, or a null pointer.
    pub fn is_null(self) -> bool {
        unsafe { LLVMIsNull(self.0) != 0 }
    }

    /// Whether the value is a global variable that is never written.
    pub fn is_constant_global(self) -> bool {
        !unsafe { LLVMIsAGlobalVariable(self.0) }.is_null()
            && unsafe { LLVMIsGlobalConstant(self.0) != 0 }
    }

    /// For a constant expression: its operator.
    pub fn constant_expression_opcode(self) -> Option<Opcode> {
        (!unsafe { LLVMIsAConstantExpr(self.0) }.is_null())
            .then(|| unsafe { LLVMGetConstOpcode(self.0) })
    }

    /// Whether the value is a piece of inline assembly.
    pub fn is_inline_asm(self) -> bool {
        !unsafe { LLVMIsAInlineAsm(self.0) }.is_null()
    }

    /// The text of a piece of inline assembly.
    pub fn assembly_text(self) -> String {
        let mut length = 0;
        let start = unsafe { LLVMGetInlineAsmAsmString(self.0, &mut length) };
        unsafe { text(start.cast(), length) }
    }

    /// Its constraints: of outputs, inputs and clobbers, as LLVM writes them.
    pub fn assembly_constraints(self) -> String {
        let mut length = 0;
        let start = unsafe { LLVMGetInlineAsmConstraintString(self.0, &mut length) };
        unsafe { text(start.cast(), length) }
    }

    /// The function, if the value is one.
    pub fn as_function(self) -> Option<Value> {
        Value::wrap(unsafe { LLVMIsAFunction(self.0) })
    }

    /// Whether a function or global has no definition here.
    pub fn is_declaration(self) -> bool {
        unsafe { LLVMIsDeclaration(self.0) != 0 }
    }

    /// Of a global.
    pub fn linkage(self) -> LLVMLinkage {
        unsafe { LLVMGetLinkage(self.0) }
    }

    /// Parameters of a function.
    pub fn parameters(self) -> Vec<Value> {
        (0..unsafe { LLVMCountParams(self.0) })
            .map(|k| Value(unsafe { LLVMGetParam(self.0, k) }))
            .collect()
    }

    /// Where memory at this address is read.
    pub fn loads(self) -> impl Iterator<Item = Value> {
        let users = self.users().into_iter();
        users.filter(|user| user.instruction_opcode() == Some(Opcode::LLVMLoad))
    }

    /// The function of which the value is a parameter.
    pub fn parameter_of(self) -> Option<Value> {
        let parameter = Value::wrap(unsafe { LLVMIsAArgument(self.0) })?;
        Value::wrap(unsafe { LLVMGetParamParent(parameter.0) })
    }

    /// Whether a function (or the type of a call) takes variadic arguments, and how many fixed.
    pub fn call_fixed_parameters(self) -> u32 {
        let function_type = unsafe { LLVMGetCalledFunctionType(self.0) };
        unsafe { LLVMCountParamTypes(function_type) }
    }

    /// What a call or invoke calls.
    pub fn callee(self) -> Value {
        Value(unsafe { LLVMGetCalledValue(self.0) })
    }

    /// How many arguments a call passes.
    pub fn argument_count(self) -> u32 {
        unsafe { LLVMGetNumArgOperands(self.0) }
    }

    /// For an intrinsic that is called: its name without `llvm.`.
    pub fn intrinsic(self) -> Option<String> {
        self.callee().as_function()?.name().strip_prefix("llvm.").map(str::to_owned)
    }

    /// Whether nothing may stand between this call and the return after it.
    pub fn is_must_tail(self) -> bool {
        self.opcode() == LLVMOpcode::LLVMCall
            && unsafe { LLVMGetTailCallKind(self.0) }
                == llvm_sys::LLVMTailCallKind::LLVMTailCallKindMustTail
    }

    /// Whether a call can return more than once (`setjmp`).
    pub fn returns_twice(self) -> bool {
        unsafe { foretell_returns_twice(self.0) != 0 }
    }

    /// Bytes behind an argument that a call passes by value; 0 for ordinary arguments.
    pub fn by_value_size(self, argument: u32) -> u64 {
        unsafe { foretell_by_value_size(self.0, argument) }
    }

    /// Whether a parameter points to a copy that belongs to the callee, so that it is not the
    /// pointer that the caller gave.
    pub fn is_by_value_parameter(self) -> bool {
        unsafe { foretell_is_by_value_parameter(self.0) != 0 }
    }

    /// Puts a test whether the switch goes to this block of its successors before the switch.
    pub fn test_before_switch(self, successor: Block) {
        unsafe { foretell_test_before_switch(self.0, successor.0) }
    }

    /// Gives the invoke a normal destination of its own, and the place where its result begins.
    pub fn after_invoke(self) -> Value {
        Value(unsafe { foretell_after_invoke(self.0) })
    }

    /// Successors of a terminator.
    pub fn successors(self) -> Vec<Block> {
        (0..unsafe { LLVMGetNumSuccessors(self.0) })
            .map(|k| Block(unsafe { LLVMGetSuccessor(self.0, k) }))
            .collect()
    }

    /// Values and blocks that flow into a phi.
    pub fn incoming(self) -> Vec<(Value, Block)> {
        (0..unsafe { LLVMCountIncoming(self.0) })
            .map(|k| unsafe {
                (Value(LLVMGetIncomingValue(self.0, k)), Block(LLVMGetIncomingBlock(self.0, k)))
            })
            .collect()
    }

    /// Adds an incoming value to a phi.
    pub fn add_incoming(self, value: Value, block: Block) {
        let (mut value, mut block) = (value.0, block.0);
        unsafe { LLVMAddIncoming(self.0, &mut value, &mut block, 1) }
    }

    /// The block that holds an instruction.
    pub fn block(self) -> Block {
        Block(unsafe { LLVMGetInstructionParent(self.0) })
    }

    /// Indices of an `extractvalue` or `insertvalue`.
    pub fn indices(self) -> Vec<u32> {
        let count = unsafe { LLVMGetNumIndices(self.0) } as usize;
        let start = unsafe { LLVMGetIndices(self.0) };
        if start.is_null() {
            return Vec::new();
        }
        unsafe { std::slice::from_raw_parts(start, count) }.to_vec()
    }

    /// Predicate of an integer comparison.
    pub fn integer_predicate(self) -> Predicate {
        unsafe { LLVMGetICmpPredicate(self.0) }
    }

    /// Memory order of a load, store, fence or read-modify-write; of a compare-and-swap, the order
    /// if it succeeds.
    pub fn ordering(self) -> Option<Order> {
        use llvm_sys::LLVMAtomicOrdering::*;
        let ordering = if self.opcode() == LLVMOpcode::LLVMAtomicCmpXchg {
            unsafe { LLVMGetCmpXchgSuccessOrdering(self.0) }
        } else {
            unsafe { LLVMGetOrdering(self.0) }
        };
        match ordering {
            LLVMAtomicOrderingNotAtomic => None,
            LLVMAtomicOrderingUnordered | LLVMAtomicOrderingMonotonic => Some(Order::Relaxed),
            LLVMAtomicOrderingAcquire => Some(Order::Acquire),
            LLVMAtomicOrderingRelease => Some(Order::Release),
            LLVMAtomicOrderingAcquireRelease => Some(Order::AcquireRelease),
            LLVMAtomicOrderingSequentiallyConsistent => Some(Order::SequentiallyConsistent),
        }
    }

    /// Whether a load, store, atomic access or memory intrinsic is volatile.
    pub fn is_volatile(self) -> bool {
        match self.opcode() {
            LLVMOpcode::LLVMCall => self.operand(VOLATILE_ARGUMENT).constant_unsigned() == Some(1),
            _ => unsafe { LLVMGetVolatile(self.0) != 0 },
        }
    }

    /// The alignment of a load or store, in bytes.
    pub fn alignment(self) -> u32 {
        unsafe { LLVMGetAlignment(self.0) }
    }

    /// Has the load or store the weakest atomic order?
    pub fn is_unordered(self) -> bool {
        let order = unsafe { LLVMGetOrdering(self.0) };
        order == llvm_sys::LLVMAtomicOrdering::LLVMAtomicOrderingUnordered
    }

    /// Gives a load or store the weakest atomic order, or none.
    pub fn set_unordered(self, unordered: bool) {
        use llvm_sys::LLVMAtomicOrdering::*;
        let order =
            if unordered { LLVMAtomicOrderingUnordered } else { LLVMAtomicOrderingNotAtomic };
        unsafe { LLVMSetOrdering(self.0, order) };
    }

    /// Makes a load, store or memory intrinsic volatile, or not.
    pub fn set_volatile(self, volatile: bool) {
        let value = volatile.into();
        if self.opcode() == LLVMOpcode::LLVMCall {
            let ty = self.operand(VOLATILE_ARGUMENT).ty();
            let flag = Value(unsafe { LLVMConstInt(ty.0, value, 0) });
            self.set_operand(VOLATILE_ARGUMENT, flag);
        } else {
            unsafe { LLVMSetVolatile(self.0, value as LLVMBool) };
        }
    }

    /// Whether an instruction has metadata of this kind.
    pub fn has_metadata(self, kind: &str) -> bool {
        unsafe { !LLVMGetMetadata(self.0, self.metadata_kind(kind)).is_null() }
    }

    /// Gives an instruction metadata of this kind, without contents.
    pub fn set_metadata(self, kind: &str) {
        unsafe {
            let context = LLVMGetTypeContext(self.ty().0);
            let node = LLVMMDNodeInContext2(context, ptr::null_mut(), 0);
            let node = LLVMMetadataAsValue(context, node);
            LLVMSetMetadata(self.0, self.metadata_kind(kind), node);
        }
    }

    /// Takes metadata of this kind from an instruction.
    pub fn clear_metadata(self, kind: &str) {
        unsafe { LLVMSetMetadata(self.0, self.metadata_kind(kind), ptr::null_mut()) };
    }

    fn metadata_kind(self, kind: &str) -> u32 {
        let context = unsafe { LLVMGetTypeContext(self.ty().0) };
        unsafe { LLVMGetMDKindIDInContext(context, kind.as_ptr().cast(), kind.len() as u32) }
    }

    /// What an atomic read-modify-write computes.
    pub fn rmw_kind(self) -> RmwKind {
        use llvm_sys::LLVMAtomicRMWBinOp::*;
        match unsafe { LLVMGetAtomicRMWBinOp(self.0) } {
            LLVMAtomicRMWBinOpXchg => RmwKind::Exchange,
            LLVMAtomicRMWBinOpAdd => RmwKind::Add,
            LLVMAtomicRMWBinOpSub => RmwKind::Sub,
            LLVMAtomicRMWBinOpAnd => RmwKind::And,
            LLVMAtomicRMWBinOpNand => RmwKind::Nand,
            LLVMAtomicRMWBinOpOr => RmwKind::Or,
            LLVMAtomicRMWBinOpXor => RmwKind::Xor,
            LLVMAtomicRMWBinOpMax => RmwKind::Max,
            LLVMAtomicRMWBinOpMin => RmwKind::Min,
            LLVMAtomicRMWBinOpUMax => RmwKind::UMax,
            LLVMAtomicRMWBinOpUMin => RmwKind::UMin,
            _ => RmwKind::Other,
        }
    }

    /// Values of a switch's cases, zero-extended.
    pub fn switch_cases(self) -> Vec<u64> {
        (1..unsafe { LLVMGetNumSuccessors(self.0) })
            .filter_map(|k| Value(unsafe { LLVMGetSwitchCaseValue(self.0, k) }).constant_unsigned())
            .collect()
    }

    /// Replaces an operand.
    pub fn set_operand(self, index: u32, value: Value) {
        unsafe { LLVMSetOperand(self.0, index, value.0) }
    }

    /// Whether a branch is conditional.
    pub fn is_conditional(self) -> bool {
        unsafe { LLVMIsConditional(self.0) != 0 }
    }

    /// The condition of a conditional branch.
    pub fn condition(self) -> Value {
        Value(unsafe { LLVMGetCondition(self.0) })
    }

    /// Type that an `alloca` allocates.
    pub fn allocated_type(self) -> Type {
        Type(unsafe { LLVMGetAllocatedType(self.0) })
    }

    /// Type over which a `getelementptr` indexes.
    pub fn source_element_type(self) -> Type {
        Type(unsafe { LLVMGetGEPSourceElementType(self.0) })
    }

    /// Where in the source an instruction stands.
    pub fn location(self) -> Location {
        location(self, foretell_instruction_location)
    }

    /// The linkage names of the function that the instruction was written in, of the one into which that
    /// was inlined, and so on.
    pub fn inlined_functions(self) -> impl Iterator<Item = String> {
        (0..).map_while(move |depth| {
            let mut raw = RawLocation::UNKNOWN;
            let there = unsafe { foretell_inlined_function(self.0, depth, &mut raw) };
            (there != 0).then(|| unsafe { text(raw.function, raw.function_length) })
        })
    }

    /// Has the function inlined wherever it is called.
    pub fn always_inline(self) {
        self.set_function_attribute("alwaysinline", &["noinline", "optnone"]);
    }

    /// Keeps the function from being inlined.
    pub fn never_inline(self) {
        self.set_function_attribute("noinline", &["alwaysinline", "inlinehint"]);
    }

    /// The function throws nothing.
    pub fn never_unwinds(self) {
        self.set_function_attribute("nounwind", &[]);
    }

    /// Calls of the function are not made depend on more or fewer conditions than they do.
    pub fn set_convergent(self) {
        self.set_function_attribute("convergent", &[]);
    }

    fn set_function_attribute(self, name: &str, opposites: &[&str]) {
        unsafe {
            let kind =
                |name: &str| LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let context = LLVMGetModuleContext(LLVMGetGlobalParent(self.0));
            for opposite in opposites {
                LLVMRemoveEnumAttributeAtIndex(self.0, LLVMAttributeFunctionIndex, kind(opposite));
            }
            let attribute = LLVMCreateEnumAttribute(context, kind(name), 0);
            LLVMAddAttributeAtIndex(self.0, LLVMAttributeFunctionIndex, attribute);
        }
    }

    /// Whether the function writes its result to where its first parameter points.
    pub fn returns_through_parameter(self) -> bool {
        self.parameter_attribute(0, "sret").is_some()
    }

    /// The value of an attribute of a function's parameter, 0 for one that has none.
    fn parameter_attribute(self, parameter: u32, name: &str) -> Option<u64> {
        unsafe {
            let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            // Attributes of the result come first.
            let attribute = LLVMGetEnumAttributeAtIndex(self.0, parameter + 1, kind);
            (!attribute.is_null()).then(|| LLVMGetEnumAttributeValue(attribute))
        }
    }

    /// The parameters of a function that it may write through, and how many bytes there are.
    pub fn written_parameters(self) -> Vec<(u32, u64)> {
        let count = self.parameters().len() as u32;
        let written = |parameter: u32| {
            let size = self.parameter_attribute(parameter, "dereferenceable")?;
            let is_read = self.parameter_attribute(parameter, "readonly").is_some();
            (!is_read).then_some((parameter, size))
        };
        (0..count).filter_map(written).collect()
    }

    /// Puts another value into the place of the instruction, which goes.
    pub fn replace_by(self, value: Value) {
        unsafe {
            LLVMReplaceAllUsesWith(self.0, value.0);
            LLVMInstructionEraseFromParent(self.0);
        }
    }

    /// Takes the instruction, which nothing uses, out of its block.
    pub fn remove(self) {
        unsafe { LLVMInstructionEraseFromParent(self.0) };
    }

    /// The type of a function.
    pub fn function_type(self) -> Type {
        Type(unsafe { LLVMGlobalGetValueType(self.0) })
    }

    /// Where in the source a function is declared.
    pub fn function_location(self) -> Location {
        location(self, foretell_function_location)
    }

    /// Where in the source a global variable is declared.
    pub fn global_location(self) -> Location {
        location(self, foretell_global_location)
    }

    /// Blocks of a function that are reachable from its entry, in reverse post-order: all of a
    /// block's predecessors come first, but for back edges.
    pub fn reachable_blocks(self) -> Vec<Block> {
        let entry = Block(unsafe { LLVMGetEntryBasicBlock(self.0) });
        let mut order = Vec::new();
        let mut seen = std::collections::HashSet::from([entry]);
        let mut stack = vec![(entry, entry.successors())];
        while let Some((block, todo)) = stack.last_mut() {
            match todo.pop() {
                Some(next) if seen.insert(next) => stack.push((next, next.successors())),
                Some(_) => {}
                None => {
                    order.push(*block);
                    stack.pop();
                }
            }
        }
        order.reverse();
        order
    }

    /// Whether a function is of the language's own library.
    pub fn is_of_library(self) -> bool {
        unsafe { foretell_is_of_library(self.0) != 0 }
    }

    /// What a global variable consists of; empty where it is one piece, or nothing is known.
    pub fn global_layout(self) -> String {
        unsafe { taken(foretell_global_layout(self.0)) }.unwrap_or_default()
    }

    /// What the program calls an `alloca`; `None` where it is no variable of the program.
    pub fn local_description(self) -> Option<Description> {
        let (mut name, mut function) = (RawLocation::UNKNOWN, RawLocation::UNKNOWN);
        let layout = unsafe { taken(foretell_local_layout(self.0, &mut name, &mut function)) }?;
        let name = unsafe { text(name.function, name.function_length) };
        let function = unsafe { text(function.function, function.function_length) };
        (!name.is_empty()).then_some(Description { name, function, layout })
    }

    /// What a call of `new` makes, where the program says so.
    pub fn new_description(self) -> Option<Description> {
        let mut name = RawLocation::UNKNOWN;
        let layout = unsafe { taken(foretell_new_layout(self.0, &mut name)) }?;
        let name = unsafe { text(name.function, name.function_length) };
        Some(Description { name, function: String::new(), layout })
    }

    /// Whether a function has this enumerated attribute (by LLVM's name for it).
    pub fn has_function_attribute(self, name: &str) -> bool {
        unsafe {
            let kind = LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len());
            let whole_function = llvm_sys::LLVMAttributeFunctionIndex;
            kind != 0 && !LLVMGetEnumAttributeAtIndex(self.0, whole_function, kind).is_null()
        }
    }
}

impl Block {
    /// Instructions in order.
    pub fn instructions(self) -> Vec<Value> {
        let mut instructions = Vec::new();
        let mut current = Value::wrap(unsafe { LLVMGetFirstInstruction(self.0) });
        while let Some(instruction) = current {
            instructions.push(instruction);
            current = instruction.next();
        }
        instructions
    }

    /// The function in which it is.
    pub fn function(self) -> Value {
        Value(unsafe { LLVMGetBasicBlockParent(self.0) })
    }

    /// The block's last instruction.
    pub fn terminator(self) -> Option<Value> {
        Value::wrap(unsafe { LLVMGetBasicBlockTerminator(self.0) })
    }

    /// Blocks that follow.
    pub fn successors(self) -> Vec<Block> {
        self.terminator().map(Value::successors).unwrap_or_default()
    }

    /// The place after phis and landing pads.
    pub fn first_insertion_point(self) -> Option<Value> {
        Value::wrap(unsafe { foretell_first_insertion_point(self.0) })
    }
}

/// Module, context, data layout and the types that hooks use.
#[derive(Clone, Copy)]
pub struct Module {
    module: LLVMModuleRef,
    context: LLVMContextRef,
    layout: LLVMTargetDataRef,
    /// `i32`
    pub int32: Type,
    /// `i64`
    pub int64: Type,
    /// A pointer.
    pub pointer: Type,
    /// No value.
    pub void: Type,
}

impl Module {
    /// # Safety
    /// The module is alive and nobody else uses it while handles are.
    pub unsafe fn new(module: LLVMModuleRef) -> Module {
        unsafe {
            let context = LLVMGetModuleContext(module);
            Module {
                module,
                context,
                layout: LLVMGetModuleDataLayout(module),
                int32: Type(LLVMInt32TypeInContext(context)),
                int64: Type(LLVMInt64TypeInContext(context)),
                pointer: Type(LLVMPointerTypeInContext(context, 0)),
                void: Type(LLVMVoidTypeInContext(context)),
            }
        }
    }

    /// The main source file.
    pub fn source_name(&self) -> String {
        let mut length = 0;
        let start = unsafe { LLVMGetSourceFileName(self.module, &mut length) };
        unsafe { text(start.cast(), length) }
    }

    /// Bytes that a store of the type writes.
    pub fn store_size(&self, ty: Type) -> u64 {
        unsafe { LLVMStoreSizeOfType(self.layout, ty.0) }
    }

    /// Bytes from the start of a flat struct or array to a member.
    pub fn member_offset(&self, aggregate: Type, index: u32) -> u64 {
        match aggregate.kind() {
            LLVMTypeKind::LLVMStructTypeKind => unsafe {
                LLVMOffsetOfElement(self.layout, aggregate.0, index)
            },
            _ => u64::from(index) * self.stride(aggregate.element()),
        }
    }

    /// Bytes from one array element of the type to the next.
    pub fn stride(&self, ty: Type) -> u64 {
        unsafe { LLVMABISizeOfType(self.layout, ty.0) }
    }

    /// The indices of a `getelementptr`, each with the bytes that one step of it is worth (for a
    /// struct's member, which is a constant: its size).
    pub fn strides(&self, gep: Value) -> Vec<(Value, u64)> {
        let mut ty = gep.source_element_type();
        let mut strides = Vec::new();
        for position in 1..gep.operand_count() {
            let index = gep.operand(position);
            if position > 1 {
                ty = match (ty.kind(), index.constant_integer()) {
                    (LLVMTypeKind::LLVMStructTypeKind, Some(member)) => ty.member(member as u32),
                    _ => ty.element(),
                };
            }
            strides.push((index, self.stride(ty)));
        }
        strides
    }

    /// All functions, declarations too.
    pub fn functions(&self) -> Vec<Value> {
        let mut functions = Vec::new();
        let mut current = Value::wrap(unsafe { LLVMGetFirstFunction(self.module) });
        while let Some(function) = current {
            functions.push(function);
            current = Value::wrap(unsafe { LLVMGetNextFunction(function.0) });
        }
        functions
    }

    /// All global variables, declarations too.
    pub fn globals(&self) -> Vec<Value> {
        let mut globals = Vec::new();
        let mut current = Value::wrap(unsafe { LLVMGetFirstGlobal(self.module) });
        while let Some(global) = current {
            globals.push(global);
            current = Value::wrap(unsafe { LLVMGetNextGlobal(global.0) });
        }
        globals
    }

    /// Whether each thread has its own instance of the global.
    pub fn is_thread_local(&self, global: Value) -> bool {
        unsafe { LLVMIsThreadLocal(global.0) != 0 }
    }

    /// Type of a global's contents.
    pub fn contents_type(&self, global: Value) -> Type {
        Type(unsafe { LLVMGlobalGetValueType(global.0) })
    }

    /// A function or global with this name exists.
    pub fn has_symbol(&self, name: &str) -> bool {
        let name = c_string(name);
        unsafe {
            !LLVMGetNamedFunction(self.module, name.as_ptr()).is_null()
                || !LLVMGetNamedGlobal(self.module, name.as_ptr()).is_null()
        }
    }

    /// Constant of 32 bits.
    pub fn constant32(&self, value: u32) -> Value {
        Value(unsafe { LLVMConstInt(self.int32.0, u64::from(value), 0) })
    }

    /// Constant of 64 bits.
    pub fn constant64(&self, value: u64) -> Value {
        Value(unsafe { LLVMConstInt(self.int64.0, value, 0) })
    }

    /// An integer type.
    pub fn integer(&self, width: u32) -> Type {
        Type(unsafe { LLVMIntTypeInContext(self.context, width) })
    }

    /// Constant of an integer type.
    pub fn constant_of(&self, ty: Type, value: u64) -> Value {
        Value(unsafe { LLVMConstInt(ty.0, value, 0) })
    }

    /// Zero of a type.
    pub fn null_of(&self, ty: Type) -> Value {
        Value(unsafe { LLVMConstNull(ty.0) })
    }

    /// The null pointer.
    pub fn null(&self) -> Value {
        Value(unsafe { LLVMConstNull(self.pointer.0) })
    }

    /// A constant struct without a name.
    pub fn constant_struct(&self, members: &[Value]) -> Value {
        let mut raw: Vec<_> = members.iter().map(|m| m.0).collect();
        Value(unsafe {
            LLVMConstStructInContext(self.context, raw.as_mut_ptr(), raw.len() as u32, 0)
        })
    }

    /// A constant array; all elements have the type.
    pub fn constant_array(&self, element: Type, elements: &[Value]) -> Value {
        let mut raw: Vec<_> = elements.iter().map(|m| m.0).collect();
        Value(unsafe { LLVMConstArray2(element.0, raw.as_mut_ptr(), raw.len() as u64) })
    }

    /// Adds a variable of the module.
    pub fn add_variable(&self, contents: Value, name: &str) -> Value {
        let variable = self.add_constant(contents, name);
        unsafe { LLVMSetGlobalConstant(variable.0, 0) };
        variable
    }

    /// A constant string that ends in NUL.
    pub fn constant_string(&self, text: &str) -> Value {
        Value(unsafe {
            LLVMConstStringInContext2(self.context, text.as_ptr().cast(), text.len(), 0)
        })
    }

    /// A private constant with these contents.
    pub fn add_constant(&self, contents: Value, name: &str) -> Value {
        let name = c_string(name);
        unsafe {
            let global = LLVMAddGlobal(self.module, contents.ty().0, name.as_ptr());
            LLVMSetInitializer(global, contents.0);
            LLVMSetLinkage(global, LLVMLinkage::LLVMPrivateLinkage);
            LLVMSetGlobalConstant(global, 1);
            Value(global)
        }
    }

    /// A variable of one byte that many modules may define: the program has it if one of them does.
    pub fn add_mark(&self, name: &str) {
        let name = c_string(name);
        unsafe {
            let byte = LLVMInt8TypeInContext(self.context);
            let mark = LLVMAddGlobal(self.module, byte, name.as_ptr());
            LLVMSetInitializer(mark, LLVMConstInt(byte, 1, 0));
            LLVMSetLinkage(mark, LLVMLinkage::LLVMWeakAnyLinkage);
        }
    }

    /// The function with this name, declared on first use.
    pub fn function(&self, name: &str, result: Type, parameters: &[Type]) -> (Value, Type) {
        let name = c_string(name);
        let mut raw: Vec<_> = parameters.iter().map(|p| p.0).collect();
        unsafe {
            let ty = LLVMFunctionType(result.0, raw.as_mut_ptr(), raw.len() as u32, 0);
            let existing = LLVMGetNamedFunction(self.module, name.as_ptr());
            let function = if existing.is_null() {
                LLVMAddFunction(self.module, name.as_ptr(), ty)
            } else {
                existing
            };
            (Value(function), Type(ty))
        }
    }

    /// The type of what goes to a hook.
    pub fn scalar(&self, scalar: Scalar) -> Type {
        match scalar {
            Scalar::Int32 => self.int32,
            Scalar::Int64 => self.int64,
            Scalar::Pointer => self.pointer,
        }
    }

    /// A hook of the runtime's, declared on first use.
    pub fn hook(&self, hook: Hook) -> (Value, Type) {
        let arguments: Vec<Type> = hook.arguments().iter().map(|&it| self.scalar(it)).collect();
        let result = hook.result().map_or(self.void, |it| self.scalar(it));
        self.function(hook.symbol(), result, &arguments)
    }

    /// A private function of the same type as `original`, which calls `hook(original, its arguments)`.
    pub fn add_detour(&self, name: &str, original: Value, hook: &str) -> Value {
        let ty = original.function_type();
        let name = c_string(name);
        unsafe {
            let detour = Value(LLVMAddFunction(self.module, name.as_ptr(), ty.0));
            LLVMSetLinkage(detour.0, LLVMLinkage::LLVMInternalLinkage);
            let arguments: Vec<Value> =
                std::iter::once(original).chain(detour.parameters()).collect();
            let types: Vec<Type> = arguments.iter().map(|argument| argument.ty()).collect();
            let result = Type(LLVMGetReturnType(ty.0));
            let callee = self.function(hook, result, &types);
            let entry = LLVMAppendBasicBlockInContext(self.context, detour.0, c"entry".as_ptr());
            let builder = Builder::new(self);
            LLVMPositionBuilderAtEnd(builder.builder, entry);
            let given = builder.call(callee, &arguments);
            match result == self.void {
                true => LLVMBuildRetVoid(builder.builder),
                false => LLVMBuildRet(builder.builder, given.0),
            };
            detour
        }
    }

    /// Adds a constructor that calls `body(argument)` when the module is loaded.
    pub fn add_constructor(&self, name: &str, body: (Value, Type), argument: Value, priority: i32) {
        let (function, _) = self.function(name, self.void, &[]);
        unsafe {
            LLVMSetLinkage(function.0, LLVMLinkage::LLVMInternalLinkage);
            let entry = LLVMAppendBasicBlockInContext(self.context, function.0, c"entry".as_ptr());
            let builder = LLVMCreateBuilderInContext(self.context);
            LLVMPositionBuilderAtEnd(builder, entry);
            let mut arguments = [argument.0];
            LLVMBuildCall2(builder, body.1.0, body.0.0, arguments.as_mut_ptr(), 1, UNNAMED);
            LLVMBuildRetVoid(builder);
            LLVMDisposeBuilder(builder);
            foretell_append_constructor(self.module, function.0, priority);
        }
    }
}

/// Inserts instructions at a place.
pub struct Builder {
    builder: LLVMBuilderRef,
    int64: Type,
    context: LLVMContextRef,
}

impl Drop for Builder {
    fn drop(&mut self) {
        unsafe { LLVMDisposeBuilder(self.builder) }
    }
}

macro_rules! binary_instructions {
    ($($(#[$doc:meta])* $name:ident = $build:ident;)*) => {
        $(
            $(#[$doc])*
            pub fn $name(&self, left: Value, right: Value) -> Value {
                Value(unsafe { $build(self.builder, left.0, right.0, UNNAMED) })
            }
        )*
    };
}

impl Builder {
    /// A builder without a place.
    pub fn new(module: &Module) -> Builder {
        Builder {
            builder: unsafe { LLVMCreateBuilderInContext(module.context) },
            int64: module.int64,
            context: module.context,
        }
    }

    /// Goes before the instruction, and takes its place in the source. (A call without one inside a
    /// function that has debug information would be refused by LLVM's verifier.)
    pub fn place_before(&self, instruction: Value) {
        unsafe { LLVMPositionBuilderBefore(self.builder, instruction.0) };
        self.take_debug_location(instruction);
    }

    /// Takes an instruction out of its block and inserts it at the builder's place.
    pub fn move_here(&self, instruction: Value) {
        unsafe {
            LLVMInstructionRemoveFromParent(instruction.0);
            LLVMInsertIntoBuilder(self.builder, instruction.0);
        }
    }

    /// Uses the debug location of another instruction from here on.
    pub fn take_debug_location(&self, instruction: Value) {
        unsafe {
            let location = LLVMInstructionGetDebugLoc(instruction.0);
            LLVMSetCurrentDebugLocation2(self.builder, location);
        }
    }

    binary_instructions! {
        /// `left + right`
        add = LLVMBuildAdd;
        /// `left - right`
        sub = LLVMBuildSub;
        /// `left * right`
        mul = LLVMBuildMul;
        /// `left | right`
        or = LLVMBuildOr;
        /// `left & right`
        and = LLVMBuildAnd;
        /// Exclusive or.
        xor = LLVMBuildXor;
        /// `left << right`
        shift_left = LLVMBuildShl;
        /// `left >> right`, filling with zeros
        shift_right = LLVMBuildLShr;
    }

    /// Compares two integers or pointers.
    pub fn compare(&self, predicate: Predicate, left: Value, right: Value) -> Value {
        Value(unsafe { LLVMBuildICmp(self.builder, predicate, left.0, right.0, UNNAMED) })
    }

    /// Whether two values are equal.
    pub fn equal(&self, left: Value, right: Value) -> Value {
        self.compare(Predicate::LLVMIntEQ, left, right)
    }

    /// Whether two values differ.
    pub fn differ(&self, left: Value, right: Value) -> Value {
        self.compare(Predicate::LLVMIntNE, left, right)
    }

    /// One of two values.
    pub fn select(&self, condition: Value, then: Value, otherwise: Value) -> Value {
        Value(unsafe { LLVMBuildSelect(self.builder, condition.0, then.0, otherwise.0, UNNAMED) })
    }

    /// Makes an integer, pointer or float a 64-bit integer of the same bits, zero-extended.
    pub fn widen(&self, value: Value) -> Value {
        let ty = value.ty();
        let raw = unsafe {
            match ty.kind() {
                LLVMTypeKind::LLVMIntegerTypeKind => match ty.integer_width() {
                    64 => value.0,
                    _ => LLVMBuildIntCast2(self.builder, value.0, self.int64.0, 0, UNNAMED),
                },
                LLVMTypeKind::LLVMPointerTypeKind => {
                    LLVMBuildPtrToInt(self.builder, value.0, self.int64.0, UNNAMED)
                }
                LLVMTypeKind::LLVMFloatTypeKind => {
                    let int32 = LLVMInt32TypeInContext(self.context);
                    let bits = LLVMBuildBitCast(self.builder, value.0, int32, UNNAMED);
                    LLVMBuildZExt(self.builder, bits, self.int64.0, UNNAMED)
                }
                LLVMTypeKind::LLVMDoubleTypeKind => {
                    LLVMBuildBitCast(self.builder, value.0, self.int64.0, UNNAMED)
                }
                _ => LLVMConstNull(self.int64.0),
            }
        };
        Value(raw)
    }

    /// An integer made wider or narrower, with its sign if `signed`.
    pub fn integer_cast(&self, value: Value, ty: Type, signed: bool) -> Value {
        Value(unsafe {
            LLVMBuildIntCast2(self.builder, value.0, ty.0, LLVMBool::from(signed), UNNAMED)
        })
    }

    /// A phi without incoming values.
    pub fn phi(&self, ty: Type) -> Value {
        Value(unsafe { LLVMBuildPhi(self.builder, ty.0, UNNAMED) })
    }

    /// A stack variable.
    pub fn alloca(&self, ty: Type) -> Value {
        Value(unsafe { LLVMBuildAlloca(self.builder, ty.0, UNNAMED) })
    }

    /// Reads memory.
    pub fn load(&self, ty: Type, address: Value) -> Value {
        Value(unsafe { LLVMBuildLoad2(self.builder, ty.0, address.0, UNNAMED) })
    }

    /// Writes memory.
    pub fn store(&self, value: Value, address: Value) {
        unsafe { LLVMBuildStore(self.builder, value.0, address.0) };
    }

    /// Writes memory that a signal handler looks at: in the order of the program.
    pub fn store_in_order(&self, value: Value, address: Value) {
        unsafe {
            let store = LLVMBuildStore(self.builder, value.0, address.0);
            LLVMSetVolatile(store, 1);
        }
    }

    /// Reads memory that a signal handler may have changed: in the order of the program.
    pub fn load_in_order(&self, ty: Type, address: Value) -> Value {
        let load = self.load(ty, address);
        unsafe { LLVMSetVolatile(load.0, 1) };
        load
    }

    /// An integer as a pointer.
    pub fn to_pointer(&self, value: Value, pointer: Type) -> Value {
        Value(unsafe { LLVMBuildIntToPtr(self.builder, value.0, pointer.0, UNNAMED) })
    }

    /// A pointer `bytes` further.
    pub fn offset(&self, address: Value, bytes: u64) -> Value {
        unsafe {
            let byte = LLVMInt8TypeInContext(self.context);
            let mut index = [LLVMConstInt(self.int64.0, bytes, 0)];
            Value(LLVMBuildGEP2(self.builder, byte, address.0, index.as_mut_ptr(), 1, UNNAMED))
        }
    }

    /// A member of a struct value.
    pub fn extract(&self, aggregate: Value, index: u32) -> Value {
        Value(unsafe { LLVMBuildExtractValue(self.builder, aggregate.0, index, UNNAMED) })
    }

    /// A struct value with another member.
    pub fn insert(&self, aggregate: Value, member: Value, index: u32) -> Value {
        Value(unsafe { LLVMBuildInsertValue(self.builder, aggregate.0, member.0, index, UNNAMED) })
    }

    /// Calls a function.
    pub fn call(&self, function: (Value, Type), arguments: &[Value]) -> Value {
        let mut raw: Vec<_> = arguments.iter().map(|a| a.0).collect();
        let (callee, ty) = function;
        Value(unsafe {
            LLVMBuildCall2(
                self.builder,
                ty.0,
                callee.0,
                raw.as_mut_ptr(),
                raw.len() as u32,
                UNNAMED,
            )
        })
    }

    /// Splits the block before `before`: a new block runs if `condition` holds. The builder goes
    /// into it; gives its terminator.
    pub fn place_in_if(&self, condition: Value, before: Value, cold: bool) -> Value {
        let end = Value(unsafe { foretell_split_if(condition.0, before.0, LLVMBool::from(cold)) });
        unsafe { LLVMPositionBuilderBefore(self.builder, end.0) };
        end
    }

    /// Splits the block before `before` into a likely way, for when the condition holds, and another
    /// one; gives the terminators of both. The builder stays where it was.
    pub fn ways(&self, condition: Value, before: Value) -> (Value, Value) {
        let (mut holds, mut fails) = (std::ptr::null_mut(), std::ptr::null_mut());
        unsafe { foretell_split_ways(condition.0, before.0, &mut holds, &mut fails) };
        (Value(holds), Value(fails))
    }

    /// The terminator of the block that the builder is in, where it is right before that.
    pub fn terminator(&self) -> Option<Value> {
        Value::wrap(unsafe { LLVMGetBasicBlockTerminator(LLVMGetInsertBlock(self.builder)) })
    }

    /// Goes before the instruction and keeps its own place in the source.
    pub fn go_before(&self, instruction: Value) {
        unsafe { LLVMPositionBuilderBefore(self.builder, instruction.0) };
    }
}
