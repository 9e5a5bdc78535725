# A sequence of strings as asn1 has it between its two steps, for asn1rt_nif:encode_ber_tlv/1.
fn size -> [{16, List.duplicate({4, "sixteen bytes..."}, max(1, div(size, 16)))}] end
