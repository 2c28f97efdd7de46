"""An incremental constraint solver: deep class trees, polymorphic calls and super()."""

N = 12

REQUIRED, PREFERRED, STRONG, NORMAL, WEAK, WEAKEST = range(6)  # a smaller number is stronger


class Variable:
    def __init__(self, name, value):
        self.name = name
        self.value = value
        self.constraints = []
        self.determined_by = None
        self.mark = 0
        self.strength = WEAKEST
        self.stays = True


class Constraint:
    def __init__(self, strength, planner):
        self.strength = strength
        for variable in self.variables():
            variable.constraints.append(self)
        self.forget()
        planner.add(self)

    def is_input(self):
        return False

    def satisfy(self, mark, planner):
        self.choose(mark)
        if not self.is_satisfied():
            if self.strength == REQUIRED:
                raise RuntimeError("a required constraint cannot be satisfied")
            return None
        for variable in self.inputs():
            variable.mark = mark
        out = self.output()
        overridden = out.determined_by
        if overridden is not None:
            overridden.forget()
        out.determined_by = self
        if not planner.propagate(self, mark):
            raise RuntimeError("a cycle of constraints")
        out.mark = mark
        return overridden

    def recalculate(self):
        out = self.output()
        out.strength = self.output_strength()
        out.stays = self.output_stays()
        if out.stays:
            self.execute()

    def destroy(self, planner):
        if self.is_satisfied():
            planner.remove(self)
        for variable in self.variables():
            variable.constraints.remove(self)


class Unary(Constraint):
    def __init__(self, variable, strength, planner):
        self.variable = variable
        self.satisfied = False
        super().__init__(strength, planner)

    def variables(self):
        return (self.variable,)

    def inputs(self):
        return ()

    def output(self):
        return self.variable

    def forget(self):
        self.satisfied = False

    def is_satisfied(self):
        return self.satisfied

    def choose(self, mark):
        self.satisfied = self.variable.mark != mark and self.strength < self.variable.strength

    def inputs_known(self, mark):
        return True

    def output_strength(self):
        return self.strength

    def output_stays(self):
        return not self.is_input()

    def execute(self):
        pass


class Stay(Unary):
    pass


class Edit(Unary):
    def is_input(self):
        return True


class Binary(Constraint):
    def __init__(self, first, second, strength, planner):
        self.first = first
        self.second = second
        self.direction = 0
        super().__init__(strength, planner)

    def variables(self):
        return (self.first, self.second)

    def inputs(self):
        return (self.input(),)

    def input(self):
        return self.first if self.direction > 0 else self.second

    def output(self):
        return self.second if self.direction > 0 else self.first

    def forget(self):
        self.direction = 0

    def is_satisfied(self):
        return self.direction != 0

    def choose(self, mark):
        first, second = self.first, self.second
        if first.mark == mark:
            forward = second.mark != mark and self.strength < second.strength
            self.direction = 1 if forward else 0
        elif second.mark == mark or first.strength > second.strength:
            self.direction = -1 if self.strength < first.strength else 0
        else:
            self.direction = 1 if self.strength < second.strength else 0

    def inputs_known(self, mark):
        source = self.input()
        return source.mark == mark or source.stays or source.determined_by is None

    def output_strength(self):
        return max(self.strength, self.input().strength)

    def output_stays(self):
        return self.input().stays


class Equal(Binary):
    def execute(self):
        self.output().value = self.input().value


class Scale(Binary):
    def __init__(self, first, factor, offset, second, strength, planner):
        self.factor = factor
        self.offset = offset
        super().__init__(first, second, strength, planner)

    def variables(self):
        return (*super().variables(), self.factor, self.offset)

    def inputs(self):
        return (*super().inputs(), self.factor, self.offset)

    def execute(self):
        if self.direction > 0:
            self.second.value = self.first.value * self.factor.value + self.offset.value
        else:
            self.first.value = (self.second.value - self.offset.value) // self.factor.value

    def output_stays(self):
        return super().output_stays() and self.factor.stays and self.offset.stays


class Planner:
    def __init__(self):
        self.mark = 1

    def new_mark(self):
        self.mark += 1
        return self.mark

    def add(self, constraint):
        mark = self.new_mark()
        overridden = constraint.satisfy(mark, self)
        while overridden is not None:
            overridden = overridden.satisfy(mark, self)

    def remove(self, constraint):
        out = constraint.output()
        constraint.forget()
        out.determined_by = None
        out.strength = WEAKEST
        out.stays = True
        unsatisfied = []
        todo = [out]
        while todo:
            variable = todo.pop()
            for each in variable.constraints:
                if each is not constraint and not each.is_satisfied():
                    unsatisfied.append(each)
            for each in self.consumers(variable):
                each.recalculate()
                todo.append(each.output())
        for each in sorted(unsatisfied, key=lambda each: each.strength):
            self.add(each)

    def consumers(self, variable):
        source = variable.determined_by
        return [c for c in variable.constraints if c is not source and c.is_satisfied()]

    def propagate(self, constraint, mark):
        todo = [constraint]
        while todo:
            each = todo.pop()
            if each.output().mark == mark:
                return False
            each.recalculate()
            todo.extend(self.consumers(each.output()))
        return True

    def plan(self, sources):
        mark = self.new_mark()
        todo = [each for each in sources if each.is_satisfied() and each.is_input()]
        plan = []
        while todo:
            each = todo.pop()
            out = each.output()
            if out.mark != mark and each.inputs_known(mark):
                plan.append(each)
                out.mark = mark
                todo.extend(self.consumers(out))
        return plan


def change(variable, value, planner):
    edit = Edit(variable, PREFERRED, planner)
    plan = planner.plan([edit])
    for step in range(10):
        variable.value = value + step
        for each in plan:
            each.execute()
    edit.destroy(planner)


def chain(length):
    planner = Planner()
    variables = [Variable(f"v{i}", 0) for i in range(length + 1)]
    for first, second in zip(variables, variables[1:]):
        Equal(first, second, REQUIRED, planner)
    Stay(variables[-1], STRONG, planner)
    change(variables[0], 30, planner)
    return variables[-1].value


def projection(length):
    planner = Planner()
    factor, offset = Variable("factor", 10), Variable("offset", 1000)
    targets = []
    for i in range(length):
        source, target = Variable(f"s{i}", i), Variable(f"t{i}", i)
        targets.append(target)
        Stay(source, NORMAL, planner)
        Scale(source, factor, offset, target, REQUIRED, planner)
    change(source, 17, planner)
    change(target, 1050, planner)
    change(factor, 5, planner)
    change(offset, 2000, planner)
    return source.value, sum(each.value for each in targets)


result = [(chain(120 + i), projection(60 + i)) for i in range(N)]
