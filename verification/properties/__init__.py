"""What must hold, one file each. Ids are permanent: never renumbered, never reused."""

from verification.properties.acceptance import Acceptance
from verification.properties.base import Property
from verification.properties.block_law import BlockLaw
from verification.properties.block_length import BlockLength
from verification.properties.complete_output import CompleteOutput
from verification.properties.exact_equality import ExactEquality
from verification.properties.greedy import Greedy
from verification.properties.independence import Independence
from verification.properties.knobs_before_rule import KnobsBeforeRule
from verification.properties.next_token_identity import NextTokenIdentity
from verification.properties.rows_pit import RowsClasses, RowsPit
from verification.properties.seeded import Seeded
from verification.properties.state_certificate import StateCertificate
from verification.properties.support import Support
from verification.properties.target_calls import TargetCalls
from verification.properties.token_count import TokenCount
from verification.properties.twin_equality import TwinEquality

PROPERTIES: dict[str, Property] = {
    made.id: made
    for made in (
        ExactEquality(),
        StateCertificate(),
        TwinEquality(),
        BlockLength(),
        Support(),
        Greedy(),
        Seeded(),
        TargetCalls(),
        NextTokenIdentity(),
        KnobsBeforeRule(),
        CompleteOutput(),
        Independence(),
        RowsPit(),
        RowsClasses(),
        BlockLaw(),
        TokenCount(),
        Acceptance(),
    )
}
