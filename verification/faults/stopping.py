"""Wrong ends: an output goes on too long, stops too soon, or is cut elsewhere than its tokens say."""

from verification.faults.generation import Asked, Engine, Tokens, ends_with


class PastTheEnd(Engine):
    """Only the last token of a block is looked at: text after an accepted end; huggingface/transformers #47912."""

    def take(self, asked: Asked, output: Tokens, block: Tokens) -> tuple[Tokens, bool]:
        output += block
        return output, len(output) == asked.cap or self.stops(asked, output)


class WithinALoop(Engine):
    """A stop sequence is looked for in each block alone: one that began in the loop before is missed."""

    def take(self, asked: Asked, output: Tokens, block: Tokens) -> tuple[Tokens, bool]:
        taken: Tokens = ()
        for token in block:
            taken += (token,)
            out = len(output + taken)
            if out == asked.cap or (out > asked.knobs.min_tokens and ends_with(taken, asked.stop)):
                return output + taken, True
        return output + taken, False


class OneTokenLate(Engine):
    """The end is seen one token late, inside a run; PaddlePaddle/FastDeploy PR#7121."""

    def stops(self, asked: Asked, output: Tokens) -> bool:
        return super().stops(asked, output[:-1])


class StopNotReturned(Engine):
    """The end token, or the end of the stop sequence, is not returned; after vllm-project/vllm PR#47616."""

    def take(self, asked: Asked, output: Tokens, block: Tokens) -> tuple[Tokens, bool]:
        output, over = super().take(asked, output, block)
        return (output[:-1] if over and self.stops(asked, output) else output), over


class CapOvershot(Engine):
    """The cap is looked at between loops alone; ohdearquant/lattice PR#245."""

    def drafted(self, asked: Asked, output: Tokens) -> int:
        return asked.lookahead

    def take(self, asked: Asked, output: Tokens, block: Tokens) -> tuple[Tokens, bool]:
        for token in block:
            output += (token,)
            if self.stops(asked, output):
                return output, True
        return output, len(output) >= asked.cap


class FewerThanAsked(Engine):
    """A whole loop is charged before it runs: the last tokens never come; ikawrakow/ik_llama.cpp PR#2358."""

    def take(self, asked: Asked, output: Tokens, block: Tokens) -> tuple[Tokens, bool]:
        output, over = super().take(asked, output, block)
        return output, over or len(output) + asked.lookahead + 1 > asked.cap


class FirstEndTokenAlone(Engine):
    """Of several ends only the first is known."""

    def stops(self, asked: Asked, output: Tokens) -> bool:
        return len(output) > asked.knobs.min_tokens and ends_with(output, asked.stop[:1])


class PromptCompletesAStop(Engine):
    """A stop sequence that began in the prompt ends the output."""

    def stops(self, asked: Asked, output: Tokens) -> bool:
        return len(output) > asked.knobs.min_tokens and ends_with(asked.prompt + output, asked.stop)


class BeforeTheMinimum(Engine):
    """A stop sequence ends an output that has not its minimum of tokens."""

    def stops(self, asked: Asked, output: Tokens) -> bool:
        return ends_with(output, asked.stop)


class PromptEndsTheOutput(Engine):
    """An end token at the end of the prompt counts once there is output."""

    def stops(self, asked: Asked, output: Tokens) -> bool:
        return super().stops(asked, output) or asked.prompt[-1:] in asked.stop


class NothingToFallBackOn(Engine):
    """A sequence is followed token by token; at a wrong one it begins anew, though its own end may begin it again."""

    def stops(self, asked: Asked, output: Tokens) -> bool:
        return len(output) > asked.knobs.min_tokens and any(_followed(output, sequence) for sequence in asked.stop)


def _followed(output: Tokens, sequence: Tokens) -> bool:
    found = 0
    for token in output:
        found = found + 1 if token == sequence[found] else int(token == sequence[0])
        if found == len(sequence):
            return True
    return False
